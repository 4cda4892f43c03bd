"""Plots and pages of results: every plot with its numbers, one HTML file that needs no network."""
