"""What metrics without a role say of a candidate: overlap with a reference, likeness in the eyes of a model, and its length.

All but the length compare with a reference: the first (as published: SummEval's own of CNN/Daily Mail) or each of them, and the best counts. Libraries compute them
(`perse.evaluation.text`, and nltk's METEOR); what cannot be had here is left out with the reason.

MoverScore is always left out: its one package (moverscore 1.0.3, of 2020) fetches its model when it is imported, wants a GPU, and calls what numpy 2 and transformers 5
no longer have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from perse.drpe.selection import Item, Key, References
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.text.models import TextScores, bart_scores, bert_scores
from perse.evaluation.text.overlap import bleu_of, bleu_statistics, rouge_values
from perse.identity import normalised
from perse.installing import install

LENGTH = "length"
BLEU = "BLEU"
WHOLE: Mapping[str, float] = {"ROUGE-1": 1.0, "ROUGE-2": 1.0, "ROUGE-L": 1.0, BLEU: 100.0, "METEOR": 1.0}
"""The metrics of words in common, and what a candidate has by rule that equals a reference: METEOR takes a little off for each chunk, and texts in
other alphabets have no ROUGE words."""
MOVERSCORE = "MoverScore: its package (moverscore 1.0.3, of 2020) fetches a model when it is imported, wants a GPU, and does not run with numpy 2"

NO_REFERENCE = "every metric but length: no document has a reference"


@dataclass(frozen=True)
class Baselines:
    """`scores`: method -> candidate -> score, higher is better; None where there is no reference."""

    scores: Mapping[str, Mapping[Key, float | None]]
    references: References
    settings: Mapping[str, str]
    """What a score depends on, by method: model and layer."""
    skipped: tuple[str, ...]
    """Metrics that are left out, each with the reason."""
    equal: int
    """Candidates that equal a reference that they are compared with."""
    alone: int
    """Candidates without a reference."""
    most: int
    """References of the document that has most."""


def baselines(
    items: Sequence[Item],
    *,
    references: References = "first",
    bertscore_model: Path | None = None,
    bartscore_model: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Baselines:
    """Every metric of every candidate.

    Raises:
        BadInput: sacrebleu is not installed.
    """
    pairs = [(at, text) for at, item in enumerate(items) for text in _compared_with(item, references)]
    row = np.array([at for at, _ in pairs], dtype=np.int64)
    candidates, others = [items[at].candidate.text for at, _ in pairs], [text for _, text in pairs]
    same = np.array([normalised(one) == normalised(other) for one, other in zip(candidates, others, strict=True)], dtype=bool)
    found: dict[str, Mapping[Key, float | None]] = {}
    settings: dict[str, str] = {}
    skipped: list[str] = []
    ways = _ways(bertscore_model, bartscore_model) if pairs else {}
    on_progress(0, len(ways))
    for done, (names, way) in enumerate(ways.items(), start=1):
        for name, scores in zip(names, way(candidates, others), strict=True):
            if scores.values is None:
                skipped.append(scores.skipped or name)
                continue
            values = np.where(same, WHOLE[name], scores.values) if name in WHOLE else scores.values
            found[name] = _best(items, row, values)
            settings |= {name: scores.setting} if scores.setting else {}
        on_progress(done, len(ways))
    found[LENGTH] = {item.key: float(len(item.candidate.text.split())) for item in items}
    with_one = set(row.tolist())
    return Baselines(
        scores=found,
        references=references,
        settings=settings,
        skipped=(*skipped, MOVERSCORE) if pairs else (NO_REFERENCE,),
        equal=len(set(row[same].tolist())),
        alone=len(items) - len(with_one),
        most=max((len(item.document.references) for item in items), default=0),
    )


def meteor(candidates: Sequence[str], references: Sequence[str], *, wordnet: Any = None) -> TextScores:
    """nltk's METEOR (Banerjee and Lavie, 2005: the same words, then stems, then WordNet's synonyms), 0 to 1.

    Args:
        wordnet: what knows synonyms; by default nltk's copy of WordNet, if it is on this machine.
    """
    try:
        from nltk.corpus import wordnet as installed
        from nltk.tokenize import NLTKWordTokenizer
        from nltk.translate.meteor_score import single_meteor_score
    except ModuleNotFoundError as error:
        return TextScores(None, skipped=f"METEOR: {error.name} is not installed: {install('report')}")
    if wordnet is None:
        wordnet = installed
        try:
            wordnet.ensure_loaded()
        except LookupError:
            return TextScores(
                None, skipped="METEOR: nltk has no WordNet here, which it takes synonyms from (docs/drpe.md says how it is had)"
            )
    split = NLTKWordTokenizer().tokenize
    pairs = zip(candidates, references, strict=True)
    values = [single_meteor_score(split(reference), split(candidate), wordnet=wordnet) for candidate, reference in pairs]
    return TextScores(np.array(values, dtype=np.float64), setting=f"nltk {metadata.version('nltk')}, WordNet's synonyms")


def _ways(bert: Path | None, bart: Path | None) -> Mapping[tuple[str, ...], Callable[..., Sequence[TextScores]]]:
    """What is computed together, by the names of its metrics."""

    def rouge(candidates: Sequence[str], references: Sequence[str]) -> list[TextScores]:
        return [TextScores(values) for values in rouge_values(candidates, references).values()]

    def bleu(candidates: Sequence[str], references: Sequence[str]) -> list[TextScores]:
        return [TextScores(bleu_of(bleu_statistics(candidates, references)), setting="sacrebleu, of a sentence, smoothed")]

    return {
        ("ROUGE-1", "ROUGE-2", "ROUGE-L"): rouge,
        (BLEU,): bleu,
        ("METEOR",): lambda *texts: [meteor(*texts)],
        ("BERTScore",): lambda *texts: [bert_scores(*texts, model=bert)],
        ("BARTScore",): lambda *texts: [bart_scores(*texts, model=bart)],
    }


def _compared_with(item: Item, references: References) -> Sequence[str]:
    there = item.document.references
    return there[:1] if references == "first" else there


def _best(items: Sequence[Item], row: IntArray, values: FloatArray) -> dict[Key, float | None]:
    """The highest value of each item's pairs."""
    best = np.full(len(items), -np.inf)
    np.maximum.at(best, row, values)
    return {item.key: float(value) if np.isfinite(value) else None for item, value in zip(items, best, strict=True)}
