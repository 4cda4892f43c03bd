"""The command line: read options, call one function of the library, show what it gives."""
