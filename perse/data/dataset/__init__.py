"""The data set folder: written, read, described."""
