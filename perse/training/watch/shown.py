"""A few answers of every judging, beside the reader's own: a curve says that it learns, these say what.

They are the first of the judged sample, so that the same readers are followed from judging to judging, and nothing is generated for
them. Where nothing is judged (reviews, where weights are divided among devices), nothing is shown. The file holds readers' own words, as
`.rows` does.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import read_lines
from perse.formats.json_text import shortened
from perse.judgement import Judgement
from perse.questions import Question
from perse.records import Example
from perse.secrets import printable

log = logging.getLogger(__name__)

SHOWN = "shown.jsonl"
"""In the run folder."""


class ShownAnswers(TrainerCallback):
    """Writes the first `most` answers of each judging as lines of `SHOWN`, and tells the first.

    Args:
        step: the run goes on after it: what was written of later judgings is dropped, for they come again.
    """

    def __init__(self, folder: Path, question: Question, *, most: int, step: int) -> None:
        self.file = folder / SHOWN
        self.question = question
        self.most = most
        self.lines = [line for line in _written(self.file) if line["step"] <= step]
        self.latest: list[tuple[Example, Judgement]] = []

    def take(self, examples: Sequence[Example], judgements: Sequence[Judgement]) -> None:
        """What a judging has found; it is written when the Trainer says at which step."""
        self.latest = list(zip(examples, judgements, strict=True))[: self.most]

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        found, self.latest = [self._line(state.global_step, *one) for one in self.latest], []
        if not found:
            return
        self.lines += found
        write_own(self.file, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines))
        first = found[0]
        told = first["model"]["label"] or first["model"]["status"]
        words = f": {shortened(first['model']['text'])}" if first["model"]["text"] else ""
        log.info(
            "of %s the reader says %s and the model %s%s", *map(printable, (first["id"], first["reader"]["label"], told, words))
        )

    def _line(self, step: int, example: Example, judgement: Judgement) -> dict[str, Any]:
        label, text = self.question.answer(example)
        found = judgement.model_dump(mode="json", include={"status", "label", "expected", "text"})
        who = {"id": example.id, "reviewer_id": example.reviewer_id}  # by which `perse data forget` finds the file
        return {"step": step, **who, "reader": {"label": label, "text": text}, "model": found}


def _written(file: Path) -> list[dict[str, Any]]:
    """The lines so far; of a file that was edited beyond that none, and it is kept under another name."""
    try:
        lines = read_lines(file)
    except BadInput as error:
        log.warning("%s; what was shown before is kept beside it", error)
        return []
    return lines if all(type(line.get("step")) is int for line in lines) else []
