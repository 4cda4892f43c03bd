"""Pages that the server itself shows: one to try the judge with, and one that says what can be asked. Nothing from elsewhere."""
