"""Describes raw files before anything is built from them."""
