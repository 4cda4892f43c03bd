"""What a judge must beat: predictions that read no text."""
