"""`perse drpe ...`."""
