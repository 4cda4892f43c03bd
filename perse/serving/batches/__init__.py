"""Batches: lists of items that a server keeps and judges in its own time."""
