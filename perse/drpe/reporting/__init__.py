"""DRPE in pictures and pages."""
