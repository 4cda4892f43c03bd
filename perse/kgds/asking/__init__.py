"""Summaries written and verified by models: every loop that asks."""
