"""PerSum from Amazon's reviews: python data_prep/persum.py --help (the same as `perse data persum`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("persum")
