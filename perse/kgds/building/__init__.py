"""New benchmark samples from articles and discussions."""
