"""What was measured, told once: a `Result` of tables, points and sentences, and one renderer for each medium."""
