"""A table of items -> the same table with rewritten texts: what `perse data anonymize` and `perse data summarize` do.

For data that is not Per-MPST: the result is an items file for `perse data pointwise --items`. Beside it, in OUT.work, lies
what does not belong to it: the writer's answers, the original names, and what was done to each item.
"""

from __future__ import annotations

import json
from pathlib import Path

import perse
from perse.data.rewriting.plots import RewriteOptions, Rewritten, Step, json_lines, rewrite, silent
from perse.data.sources.faults import Faults, OnError, skipped_lines
from perse.data.sources.mpst import read_mpst
from perse.errors import BadInput
from perse.runlog import file_digest, write_whole


def rewrite_table(
    items: Path, out: Path, options: RewriteOptions, *, seed: int, on_error: OnError, overwrite: bool, step: Step = silent
) -> Rewritten:
    """Rewrites the texts of `items` (id, text and perhaps title) into the JSON lines file `out`.

    Raises:
        BadInput: a file that cannot be read or may not be written, a writer that cannot be asked, or nothing came through.
        EngineLost: the writer failed at everything; the same command continues.
    """
    if out.exists() and not overwrite:
        raise BadInput(f"{out}: already there; give another --out, or --overwrite to replace it")
    faults = Faults(on_error)
    plots = read_mpst(items, faults)
    titles = {item: plot.title for item, plot in plots.items() if plot.title}
    done = rewrite({item: plot.text for item, plot in plots.items()}, options, titles=titles, seed=seed, step=step)
    work = out.with_name(out.name + ".work")
    manifest = {
        "perse": perse.__version__,
        "sources": {"items": {"name": items.name, "sha256": file_digest(items)}},
        "seed": seed,
        "rows": dict(sorted(faults.counts.items())),
        "rewriting": done.manifest,
    }
    work.mkdir(parents=True, exist_ok=True)
    audit = [
        {**line, "names": done.mappings.get(str(line["item_id"]), {}), "faults": done.reasons[str(line["item_id"])]}
        for line in done.lines
    ]
    write_whole(work / "rewriting.jsonl", json_lines(audit))
    write_whole(work / "skipped.jsonl", skipped_lines(faults.rows))
    write_whole(work / "manifest.json", json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    if not done.texts:
        raise BadInput(f"none of {len(plots)} texts could be rewritten; {work}/rewriting.jsonl says why for each")
    write_whole(out, json_lines({"item_id": item, "text": text} for item, text in done.texts.items()))
    return done
