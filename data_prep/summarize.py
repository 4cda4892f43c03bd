"""Summaries of texts: python data_prep/summarize.py --help (the same as `perse data summarize`)"""

from perse.commands.data.build import run

if __name__ == "__main__":
    run("summarize")
