"""How well scores of candidates agree with people, beside metrics and the published numbers."""
