"""A person removed from what was built, and what still holds them elsewhere."""
