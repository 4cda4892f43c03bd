"""How an engine's answers become judgements: exactly, from token ids, or in words, from a chat."""
