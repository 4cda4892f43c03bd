"""Knowledge-grounded discussion summaries: generate them, verify them with a judge, and score them (KGDS).

`benchmark` is the data, `generate` writes summaries, `verify` and `errors` ask the judge about them, `outcomes` holds the results,
ours or released, `metrics` the numbers, `report` the tables and plots; `build` makes new samples and `agreement` says how far to
trust the judge.
"""
