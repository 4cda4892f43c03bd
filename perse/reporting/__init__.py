"""Pictures and pages of what was measured: every plot with its numbers, one HTML file that needs no network."""
