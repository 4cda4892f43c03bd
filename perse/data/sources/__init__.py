"""Readers of raw formats, one file each, all giving `perse.records` or what they are made of.

`table` reads any table of reviews or comparisons: JSON lines, CSV or TSV, with the columns named as the user has them. `mpst`,
`doc` and `amazon` read corpora as they were published. They stand on `lines` (files as records with line numbers), `columns`
(which column holds what), `rows` (values as texts, scores, answers) and `faults` (bad rows). `formats` says what a file is, and
`facts` what its records say, for `perse data describe`.
"""
