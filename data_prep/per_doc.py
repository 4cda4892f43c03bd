"""Per-DOC from an annotation table: python data_prep/per_doc.py --help (the same as `perse data per-doc`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("per-doc")
