"""Examples to token ids, in one place."""
