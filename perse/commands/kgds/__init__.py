"""`perse kgds ...`."""
