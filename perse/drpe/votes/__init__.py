"""The vote: who is asked what, and how votes become a score."""
