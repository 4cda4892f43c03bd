"""Readers of raw formats, one file each, all giving `perse.records`.

`table` reads any table of reviews or comparisons: JSON lines, CSV or TSV, with the columns named as the user has them.
"""
