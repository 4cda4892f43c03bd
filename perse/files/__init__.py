"""Files on the disk: written atomically, never overwriting others' files."""
