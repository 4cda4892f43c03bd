"""Files on the disk: never half written, and nobody else's."""
