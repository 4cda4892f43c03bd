"""Our numbers next to the published ones."""
