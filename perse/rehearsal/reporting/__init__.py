"""A run's report: one HTML page with the tables, the pass rates as a figure, and the story of each sample (docs/rehearsal.md)."""
