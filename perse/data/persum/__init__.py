"""Summaries for one reader, from reviews of products (PerSum)."""
