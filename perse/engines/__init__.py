"""Engines: token ids in, text ids and exact label probabilities out."""
