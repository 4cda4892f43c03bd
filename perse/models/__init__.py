"""Find, check and open models and tokenizers of others."""
