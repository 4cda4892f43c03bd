"""Examples as rows of tokens in which a shared prefix stands once, and the attention that reads them."""
