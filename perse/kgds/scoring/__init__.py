"""Outcomes to the numbers of the paper."""
