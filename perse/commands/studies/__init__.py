"""`perse study ...`."""
