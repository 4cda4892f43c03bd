"""A reader's k earlier reviews: selected, re-drawn each epoch, measured, kept apart from the target."""
