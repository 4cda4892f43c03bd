"""Commands that read runs and print a Result: evaluate, compare, agreement, report."""
