"""Experiments that ask a judge in several ways, or read what it answered, and say what the difference is worth."""
