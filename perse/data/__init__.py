"""The data room: raw files -> a data set folder.

`sources` reads raw files into records, `pseudonyms` hides who wrote them, `profiles` draws k-review profiles, `splits`
keeps training and validation apart, `leaks` proves that it did, `folder` writes and reads the result, `build` runs all of it
and `commands` is its command line. (DESIGN.md, section 3; PerSE, section 4.1.)
"""
