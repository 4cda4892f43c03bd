"""JSON, YAML and CSV of others, read strictly and written safely."""
