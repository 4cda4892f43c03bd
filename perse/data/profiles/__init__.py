"""A reader's k earlier reviews: chosen, dealt again each epoch, measured, kept apart from the target."""
