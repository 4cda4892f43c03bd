"""Our figures beside those that were published."""
