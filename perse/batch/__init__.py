"""Offline scoring of many examples."""
