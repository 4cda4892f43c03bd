"""`python -m perse ...`: the same as `perse ...`, for the Python that is named."""

from perse.cli import main

if __name__ == "__main__":
    main()
