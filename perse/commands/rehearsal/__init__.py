"""`perse rehearsal ...`."""
