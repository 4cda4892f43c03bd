"""Amazon's reviews with the products' descriptions: python data_prep/amazon.py --help (the same as `perse data amazon`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("amazon")
