"""Made-up releases, scored by `perse` and by the rules of the authors' scripts, which are written down here a second time.

Their rules: files are `*result.json` in the order of the number before the first dot; what a name has between a marker and the next
`_` tells where the next summary's files begin; summaries and groups are matched in order; what is extracted is compared letter by
letter; a conclusion counts if it is "knowable"; means are of the samples that this one model has.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import groupby
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from kgds_builders import benchmark, put

from perse.kgds.benchmark import Benchmark
from perse.kgds.outcomes import ErrorType
from perse.kgds.released.reader import read_released
from perse.kgds.scoring.metrics import results

KINDS = {ErrorType.OFI: 5, ErrorType.OSD: 4, ErrorType.IRU: 3, ErrorType.IRIC: 2, ErrorType.OM: 1}
TAGS = [
    "<Paragraph_1>",
    "<Paragraph_2>",
    "<Paragraph_3>",
    "<Paragraph_4>",
    "<Paragraph_9>",
    "Paragraphs 4-6",
    "None",
    "Paragraph 1",
]


def made_up(folder: Path, known: Benchmark, *, seed: int, told: bool = False) -> Path:
    """One model's release of some of the samples, with odd tags and odd files; names sometimes only group, unless
    `told`."""
    chance = random.Random(seed)
    outputs = folder / "outputs"
    samples = sorted(chance.sample(sorted(known.samples), 5))
    shift = 0 if told else chance.choice([0, -1, 40])  # of the numbers in names: with another than 0 they are no samples
    for pattern in ("ebs-aos", "abs-aos"):
        below = Path(pattern, "structured-prompt", "alpha")
        facts = opinions = errors = 7
        for sample in samples:
            one = known.samples[sample]
            summary: dict[str, Any] = {"Abstractive_Opinion_Summary": "Person1 is glad."}
            if pattern == "ebs-aos":
                summary["Extractive_Background_Summary"] = chance.choices(TAGS, k=chance.randint(0, 5))
            put(outputs / "paradigms" / below / f"{sample}.{pattern}.result.json", summary)
            for part in (*one.supporting_facts, *one.nonsupporting_facts) if pattern == "abs-aos" else ():
                said = [{"Inference_Conclusion": chance.choice(["knowable", "unknowable"])} for _ in part.facts]
                put(outputs / "verification/fact" / below / f"{facts}.abs-{sample + shift}_{part.index}.result.json", said)
                facts += 1
            for at in range(len(one.opinions)):
                conclusion = chance.choice(["knowable", "unknowable", "partly"])
                name = f"{opinions}.{pattern}-{sample + shift}_{at}.result.json"
                put(outputs / "verification/opinion" / below / name, {"Inference_Conclusion": conclusion})
                opinions += 1
                if conclusion != "knowable":
                    name = f"{errors}.{pattern}-{sample + shift}_{at}.result.json"
                    kind = f"Error Type{chance.randint(1, 5)}"
                    put(outputs / "detection/opinion" / below / name, {"Detection_Conclusion": kind})
                    errors += 1
        put(outputs / "verification/opinion" / below / "log.json", {"not": "a result"})
    return outputs


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*result.json"), key=lambda path: int(path.name.split(".")[0]))


def groups(folder: Path, marker: str) -> list[list[Any]]:
    parts = groupby(files(folder), key=lambda path: path.name.split(marker)[1].split("_")[0])
    return [[json.loads(path.read_text()) for path in some] for _, some in parts]


def by_the_rules(outputs: Path, known: Benchmark, pattern: str) -> tuple[float, ...]:
    below = Path(pattern, "structured-prompt", "alpha")
    rows = []
    summaries = files(outputs / "paradigms" / below)
    opinions = groups(outputs / "verification/opinion" / below, "aos-")
    facts = groups(outputs / "verification/fact" / below, "abs-") if pattern == "abs-aos" else opinions
    assert len(summaries) == len(opinions) == len(facts)
    for path, said, verified in zip(summaries, opinions, facts, strict=True):
        sample = known.samples[int(path.name.split(".")[0])]
        if pattern == "ebs-aos":
            chosen = set(json.loads(path.read_text())["Extractive_Background_Summary"])
            gold = {f"<Paragraph_{paragraph.index}>" for paragraph in sample.supporting}
            right, extracted, wanted = len(chosen & gold), len(chosen), len(gold)
        else:
            yes = [one["Inference_Conclusion"] == "knowable" for part in verified for one in part]
            covered = Counter(fact.type for fact, is_covered in zip(sample.facts, yes, strict=True) if is_covered)
            right, extracted = covered[1], covered[1] + covered[0]
            wanted = sum(fact.type == 1 for fact in sample.facts)
        recall, precision = right / wanted, right / extracted if extracted else 0.0
        f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
        opinion = sum(one["Inference_Conclusion"] == "knowable" for one in said) / len(said)
        rows.append((recall, precision, f1, opinion, sqrt(f1 * opinion)))
    return tuple(round(sum(100 * value for value in column) / len(rows), 2) for column in zip(*rows, strict=True))


def shares_by_the_rules(outputs: Path, pattern: str) -> list[float]:
    said = [json.loads(path.read_text()) for path in files(outputs / "detection/opinion" / pattern / "structured-prompt/alpha")]
    counted = Counter(one["Detection_Conclusion"] for one in said)
    shares = {kind: round(100 * count / len(said), 2) for kind, count in counted.items()}
    smallest = min(shares, key=lambda kind: shares[kind])  # of several the first that came
    shares[smallest] = round(shares[smallest] + 100 - sum(shares.values()), 2)
    return [shares.get(f"Error Type{kind}", 0.0) for kind in KINDS.values()]


@pytest.mark.parametrize("seed", range(24))
def test_every_number_is_that_of_the_authors_scripts(tmp_path: Path, seed: int) -> None:
    known = benchmark(8)
    outputs = made_up(tmp_path, known, seed=seed)
    found = results(known, read_released(outputs, known, as_published=True), as_published=True, resamples=100)
    assert len(found.scores) == 2 and not found.refused
    for row in found.scores:
        values = tuple(row.values[metric].value for metric in ("recall", "precision", "f1", "cao", "op"))  # type: ignore[index]
        assert values == pytest.approx(by_the_rules(outputs, known, row.pattern), abs=0.0101 / 2)
        assert row.errors is not None and row.errors.shares is not None
        assert list(row.errors.shares.values()) == shares_by_the_rules(outputs, row.pattern)


def test_each_models_own_samples_stand_beside_the_common_ones_as_the_authors_score(tmp_path: Path) -> None:
    known = benchmark(8)
    outputs = made_up(tmp_path, known, seed=2, told=True)
    alone = results(known, read_released(outputs, known, as_published=True), as_published=True, resamples=100)
    for pattern in ("ebs-aos", "abs-aos"):  # another model, of the first three samples only
        for path in [*outputs.glob(f"*/{pattern}/*/alpha/*.json"), *outputs.glob(f"*/*/{pattern}/*/alpha/*.json")]:
            (path.parent.parent / "beta").mkdir(exist_ok=True)
            (path.parent.parent / "beta" / path.name).write_bytes(path.read_bytes())
    for path in files(outputs / "paradigms/ebs-aos/structured-prompt/beta")[3:]:
        path.unlink()
    rest = {int(path.name.split(".")[0]) for path in files(outputs / "paradigms/ebs-aos/structured-prompt/beta")}
    for path in files(outputs / "verification/opinion/ebs-aos/structured-prompt/beta"):
        if int(path.name.split("aos-")[1].split("_")[0]) not in rest:
            path.unlink()
    both = results(known, read_released(outputs, known, as_published=True), as_published=True, resamples=100)
    assert len(both.samples) == 3 and len(alone.samples) == 5
    own = {(row.model, row.pattern): row for row in both.own}
    assert set(own) == {("alpha", "ebs-aos"), ("alpha", "abs-aos"), ("beta", "abs-aos")}, "beta's ebs-aos has no more"
    for row in alone.scores:
        assert own["alpha", row.pattern].values == row.values
