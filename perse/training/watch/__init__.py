"""Judging unseen readers while training: how often, whom, how, and what is kept."""
