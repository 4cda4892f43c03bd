"""Per-MPST from MPST's plots and a table of reviews: python data_prep/per_mpst.py --help (the same as `perse data per-mpst`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("per-mpst")
