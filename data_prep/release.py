"""The data sets that PerSE's authors released: python data_prep/release.py --help (the same as `perse data release`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("release")
