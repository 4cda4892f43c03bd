"""Readers that the server keeps: their past reviews and comparisons, so that clients send the new text alone."""
