"""The judge over HTTP: the same routes inside vLLM's server and on the embedded engine, and a client."""
