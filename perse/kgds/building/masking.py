"""Facts of nonsupporting paragraphs that supporting ones also state: they are masked, and ignored by the metrics (KGDS, section 4.4).

Otherwise a summary would be blamed for a fact that it has from the right paragraph. Asked as facts are verified, against all supporting
paragraphs of the sample at once, so that its questions share all but the fact. A fact without an answer is masked, too,
so that it does not count against any summary; such facts are counted apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from perse.errors import BadInput
from perse.files.runlog import RunLog
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loop import answer_all
from perse.kgds.building.decomposing import Facts, Place
from perse.kgds.building.drafts import Agreed
from perse.kgds.folder import JUDGEMENTS, read_judgements
from perse.progress import OnProgress, unseen
from perse.questions.claims import MASK_CONFLICT
from perse.records import ClaimExample

_PROMPTS = 16
"""Its digest identifies wording, template and tokenizer."""


def conflicts(drafts: Sequence[Agreed], facts: Facts, repeated: set[Place]) -> dict[Place, ClaimExample]:
    """What is asked: each fact of a nonsupporting paragraph that is no repetition, against the supporting paragraphs."""
    found = {}
    for one in drafts:
        text = "\n".join(one.article[paragraph - 1] for paragraph in one.supporting)
        for paragraph in range(1, len(one.kept) + 1):
            if paragraph in one.supporting:
                continue
            for at, fact in enumerate(facts[one.number, paragraph], start=1):
                place = (one.number, paragraph, at)
                if place not in repeated:
                    who = f"{one.number:05d}"
                    found[place] = ClaimExample(id=f"{who}/{paragraph}/{at}", reviewer_id=who, text=text, claim=fact)
    return found


def mask(
    judge: Judge,
    asked: Mapping[Place, ClaimExample],
    folder: Path,
    *,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> dict[Place, Judgement]:
    """The judgement of each fact, from `folder` as far as it has them; what the engine failed at is asked again.

    Raises:
        RunMismatch: the folder holds judgements of other facts, or by another judge.
        BadInput: the judge had no answer to any question.
        EngineLost: the engine is gone for good.
    """
    claims = list(asked.values())
    settings = JudgeSettings(temperature=0, seed=seed)
    lines = "".join(claim.model_dump_json() + "\n" for claim in claims)
    identity = {
        "kind": "kgds-masking",
        "facts": {"count": len(claims), "sha256": hashlib.sha256(lines.encode()).hexdigest()},
        "prompts_sha256": judge.prompt_digest(MASK_CONFLICT, claims[:_PROMPTS], settings),
        "judge": judge.for_manifest,
        "settings": asdict(settings),
    }
    with RunLog(folder, identity, lines=JUDGEMENTS) as log:
        answer_all(judge, [(MASK_CONFLICT, claims)], log, settings=settings, on_progress=on_progress)
        answers = read_judgements(log.path)
    if claims and not any(one.status is Status.OK for one in answers.values()):
        first = answers[claims[0].id]
        raise BadInput(
            f"{folder}: none of {len(claims)} facts got a yes or no, the first because {first.status}: {first.error}; move the folder "
            "away and give another --judge"
        )
    return {place: answers[claim.id] for place, claim in asked.items()}
