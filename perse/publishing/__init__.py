"""Publishes a trained judge: merged, described and pushed to a hub."""
