"""`perse data ...`."""
