"""A judge: from its name to its answers, and the loop that asks, keeps and goes on."""
