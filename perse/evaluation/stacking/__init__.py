"""Fits a stacking (`perse.stacking`), and finds what each source adds to it on readers that it was not fitted on."""
