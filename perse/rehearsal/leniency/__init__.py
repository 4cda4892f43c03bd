"""How lenient a judge of summaries is: it is asked about summaries that people have graded (`reading`, `asking`), and what it gives is held against what
people gave (`measuring`, `telling`). `kept` is what `perse rehearsal score` says of it before any number.
"""
