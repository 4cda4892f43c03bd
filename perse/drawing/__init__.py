"""Figures on sheets: one look for all plots, whoever draws them."""
