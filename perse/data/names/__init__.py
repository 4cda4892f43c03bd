"""Names of people and places in texts: recognized, checked, replaced."""
