"""Giving a trained judge to others: merged, described and pushed to a hub."""
