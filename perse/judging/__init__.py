"""A judge: from its name to its answers, and the resumable loop that asks and keeps."""
