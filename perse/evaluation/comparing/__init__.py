"""Two or more runs against each other, over the same examples."""
