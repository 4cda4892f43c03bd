"""Removes a person from what perse built, and finds where they remain."""
