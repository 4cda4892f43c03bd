"""New names for the people and places of texts: python data_prep/anonymize.py --help (the same as `perse data anonymize`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("anonymize")
