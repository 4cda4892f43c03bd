"""`perse score ...`: judge many examples, here or on many machines."""
