"""The same examples with other profiles."""
