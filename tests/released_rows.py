"""Rows as the released Per-MPST files have them, about ferries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def entry(number: int, *, plot: str, review: str, score: int, reviewer: str = "Nora Quill") -> Row:
    return {
        "reviewer_name": reviewer,
        "movie_index": number,
        "movie_id": f"tt{number:03d}",
        "movie_title": f"The Ferry {number}",
        "summ_plot": plot,
        "clean_review": review,
        "score": score,
    }


def mpst_row(idx: int, past: Sequence[Row], target: Row) -> Row:
    """As the released rows are built: reviews shown, the target last in `examples`, quotes left as they are."""
    shown = "\n".join(
        f"[The Start of Plot {n}]\n{one['summ_plot']}\n[The End of Plot {n}]\n[Review]\n"
        f'```json\n{{\n  "Review": "{one["clean_review"]}",\n  "Score": {one["score"]}\n}}\n```\n'
        for n, one in enumerate(past)
    )
    asked = f'Answer thus:\n```json\n{{\n  "Review": "<review>",\n  "Score": <1-10>\n}}\n```\n\n[The Start of Plot]\n{target["summ_plot"]}\n[The End of Plot]\n'
    return {
        "examples": [*past, target],
        "idx": idx,
        "review_index": 0,
        "prompt": [f"<|prompter|>Read these.\n\n{shown}\n\n{asked}</s><|assistant|>[Review] In Json: "],
        "completion": f'```json{{  "Review": "{target["clean_review"]}",  "Score": {target["score"]}}}```',
    }
