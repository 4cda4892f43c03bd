"""Baselines that a judge must beat: predictions that read no text."""
