"""Checkpoints: written, checked, put together again for another number of processes."""
