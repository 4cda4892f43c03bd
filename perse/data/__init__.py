"""The data room: raw files -> a data set folder.

`sources` reads raw files into records, `pseudonyms` hides who wrote them, `profiles` draws k-review profiles and keeps
training and validation apart, `leaks` proves that it did, `dataset` writes and reads the result, and `build` runs all of it. (DESIGN.md, section 3; PerSE, section 4.1.)
"""
