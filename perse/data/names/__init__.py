"""Names of people and places in texts: found, judged real, replaced."""
