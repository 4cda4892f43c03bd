"""PerSum from Amazon's reviews: python data_prep/persum.py --help (the same as `perse data persum`)"""

from perse.data.commands import run

if __name__ == "__main__":
    run("persum")
