"""What stands before every route, vLLM's own included: who may come in, how many at once, for how long, and how the server stops."""
