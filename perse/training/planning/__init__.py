"""What a training will need: memory, disk, time."""
