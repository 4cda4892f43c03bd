"""Results in one form: a `Result` of tables, points and sentences, and one renderer for each medium."""
