"""Compares two or more runs over the same examples."""
