"""Any table of critics' reviews: python data_prep/critics.py --help (the same as `perse data pointwise`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("pointwise")
