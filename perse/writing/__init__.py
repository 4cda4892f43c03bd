"""Text from any engine, checked and kept: `writer` asks, `cache` keeps what was answered, `loop` checks answers and asks again."""
