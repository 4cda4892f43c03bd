"""A judge's distribution combined with the numbers that need no judge, by an ordinal model that was fitted on readers the judge was not trained on."""
