"""Text from any engine, checked and kept: `writer` asks, `cache` keeps the answers, `loop` checks answers and asks again; `objects` reads JSON."""
