"""Do the probabilities of a judge mean what they say? The formulas, once: the report, its figures and the studies all use these."""
