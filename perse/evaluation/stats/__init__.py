"""Correlations, intervals, resampling and the estimates made of them."""
