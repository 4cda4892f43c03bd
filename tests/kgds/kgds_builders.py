"""Two small hand-written samples of KGDS, as file, as objects, and as the authors would release a model's outcomes on them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perse.kgds.benchmark import Benchmark, Sample

RawSample = dict[str, Any]


def paragraphs(*texts: str) -> list[dict[str, Any]]:
    """Numbered from 1."""
    return [{"paragraph_index": index, "paragraph_text": text} for index, text in enumerate(texts, start=1)]


def facts(index: int, *typed: tuple[int, str]) -> dict[str, Any]:
    """The facts of paragraph `index`."""
    return {"paragraph_index": index, "atomic_facts": [{"atomic_fact": text, "type": kind} for kind, text in typed]}


def two_samples() -> list[RawSample]:
    """In the authors' format, fresh each time.

    Sample 1: 4 paragraphs, 1 and 3 supporting; as they are asked, its facts have types 1 1 2 | 1 1 3 | 0 0 | 0 4; 3 opinions.
    Sample 2: 2 paragraphs, the second supporting; types 1 1 | 0; 2 opinions.
    """
    library = paragraphs(
        "The town library of Harlow will open on Sundays from May. The council pays 40,000 euros a year for it.",
        "The building dates from 1911. It was once a flour mill.",
        "Mara Lind and Otto Beck, who volunteered, will work on Sundays, when the library will be open.",
        "On weekdays the doors open at nine. The council pays for the library.",
    )
    ferry = paragraphs(
        "The ferry to Skarholm was built in 1987.",
        "From June the ferry will sail only twice a day, the company says, because diesel is dear.",
    )
    return [
        {
            "SBK": library,
            "KGD": [
                {"participant": "Person1", "utterance": "At last! This was overdue."},
                {
                    "participant": "Person2",
                    "utterance": "I doubt that these two can manage it alone. Longer evenings would be better.",
                },
            ],
            "BSP": [library[0], library[2]],
            "CAO": [
                "Person1 thinks that **the Sunday opening of the library** was overdue.",
                "Person2 doubts that **Mara Lind** and **Otto Beck** can manage it alone.",
                "Person2 thinks that longer evenings would be better.",
            ],
            "BSPAF": [
                facts(
                    1,
                    (1, "The library of Harlow will open on Sundays."),
                    (1, "The Sunday opening begins in May."),
                    (2, "The council pays 40,000 euros a year for the Sunday opening."),
                ),
                facts(
                    3,
                    (1, "Mara Lind will work on Sundays."),
                    (1, "Otto Beck will work on Sundays."),
                    (3, "The library will be open on Sundays."),
                ),
            ],
            "BNPAF": [
                facts(2, (0, "The building dates from 1911."), (0, "The building was once a flour mill.")),
                facts(4, (0, "On weekdays the library opens at nine."), (4, "The council pays for the library.")),
            ],
        },
        {
            "SBK": ferry,
            "KGD": [
                {"participant": "Person1", "utterance": "Twice is too few for the people out there."},
                {"participant": "Person2", "utterance": "It is a sensible way to save."},
                {"participant": "Person1", "utterance": "Not for them."},
            ],
            "BSP": [ferry[1]],
            "CAO": [
                "Person1 thinks that **two sailings a day** are too few for the people of Skarholm.",
                "Person2 thinks that sailing less is a sensible way to save.",
            ],
            "BSPAF": [facts(2, (1, "The ferry will sail twice a day."), (1, "The fewer sailings begin in June."))],
            "BNPAF": [facts(1, (0, "The ferry was built in 1987."))],
        },
    ]


def many_samples(number: int) -> list[RawSample]:
    """The two in turn, told apart by their articles' first words."""
    raw = [copy.deepcopy(two_samples()[at % 2]) for at in range(number)]
    for at, one in enumerate(raw, start=1):
        one["SBK"][0]["paragraph_text"] = f"({at}) {one['SBK'][0]['paragraph_text']}"
        for paragraph in one["BSP"]:
            paragraph["paragraph_text"] = one["SBK"][paragraph["paragraph_index"] - 1]["paragraph_text"]
    return raw


def write_benchmark_file(folder: Path, raw: Sequence[RawSample] | None = None) -> Path:
    """FOLDER/KGDS.json, by default of the two samples."""
    path = folder / "KGDS.json"
    path.write_text(json.dumps(two_samples() if raw is None else raw, indent=1), encoding="utf-8")
    return path


def sample(number: int = 1) -> Sample:
    """Sample 1 or 2."""
    return Sample.model_validate({**two_samples()[number - 1], "number": number})


def benchmark(size: int = 2) -> Benchmark:
    """The two samples, or `size` of them in turn, without a file."""
    samples = {
        number: Sample.model_validate({**raw, "number": number}) for number, raw in enumerate(many_samples(size), start=1)
    }
    return Benchmark(Path("KGDS.json"), samples, f"digest of {size}")


def bits(text: str) -> tuple[bool, ...]:
    """ "10 1" as (True, False, True)."""
    return tuple(one == "1" for one in text if one in "01")


RELEASED: dict[tuple[str, str, str], tuple[dict[int, Any], dict[int, str], dict[int, str], dict[int, str]]] = {
    # (model, pattern, prompt): summaries (tags of paragraphs, None where the model wrote no list), covered facts paragraph by
    # paragraph as they are asked, covered opinions, and the numbers of the error types of the others.
    ("alpha", "ebs-aos", "structured-prompt"): ({1: (1, 3), 2: (1, 2)}, {}, {1: "110", 2: "10"}, {1: "3", 2: "1"}),
    ("alpha", "ebs-aos", "self-reflection"): ({1: (1, 2, 9), 2: ()}, {}, {1: "111", 2: "00"}, {2: "23"}),
    ("beta", "ebs-aos", "structured-prompt"): ({1: None, 2: (2,)}, {}, {1: "000", 2: "11"}, {1: "332"}),
    ("beta", "ebs-aos", "self-reflection"): ({1: (3,), 2: (1,)}, {}, {1: "101", 2: "01"}, {1: "3", 2: "3"}),
    ("alpha", "abs-aos", "structured-prompt"): (
        {1: (), 2: ()},
        {1: "101 101 10 01", 2: "11 0"},
        {1: "100", 2: "11"},
        {1: "33"},
    ),
    ("alpha", "abs-aos", "self-reflection"): (
        {1: (), 2: ()},
        {1: "000 000 00 00", 2: "10 1"},
        {1: "001", 2: "11"},
        {1: "45"},
    ),
    ("beta", "abs-aos", "structured-prompt"): (
        {1: (), 2: ()},
        {1: "110 110 00 00", 2: "00 0"},
        {1: "111", 2: "00"},
        {2: "12"},
    ),
    ("beta", "abs-aos", "self-reflection"): (
        {1: (), 2: ()},
        {1: "111 101 11 11", 2: "11 1"},
        {1: "110", 2: "10"},
        {1: "5", 2: "5"},
    ),
}
"""Two models on the two samples; test_released.py works out by hand what they score."""


def write_released(folder: Path) -> Path:
    """FOLDER/outputs as the authors would release `RELEASED`; running numbers begin at 7, so that sample 1 crosses from 9 to 10."""
    outputs = folder / "outputs"
    for (model, pattern, prompt), (summaries, facts, opinions, errors) in RELEASED.items():
        below = Path(pattern, prompt, model)
        for number, cited in summaries.items():
            summary: dict[str, Any] = {"Abstractive_Opinion_Summary": "Person1 is glad."}
            if pattern == "abs-aos":
                summary["Abstractive_Background_Summary"] = "A library opens."
            elif cited is not None:
                summary["Extractive_Background_Summary"] = [f"<Paragraph_{index}>" for index in cited]
            put(outputs / "paradigms" / below / f"{number}.{pattern}.result.json", summary)
        parts = [(number, at, part) for number, one in facts.items() for at, part in enumerate(one.split(), start=1)]
        for running, (number, at, part) in enumerate(parts, start=7):
            conclusions = [_verified(covered) for covered in bits(part)]
            put(outputs / "verification" / "fact" / below / f"{running}.abs-{number}_{at}.result.json", conclusions)
        single = [(number, at, covered) for number, one in opinions.items() for at, covered in enumerate(bits(one), start=1)]
        for running, (number, at, covered) in enumerate(single, start=8):
            name = f"{running}.{pattern}-{number}_{at}.result.json"
            put(outputs / "verification" / "opinion" / below / name, _verified(covered))
        detected = [(number, at, kind) for number, one in errors.items() for at, kind in enumerate(one, start=1)]
        for running, (number, at, kind) in enumerate(detected, start=9):
            name = f"{running}.{pattern}-{number}_{at}.result.json"
            put(outputs / "detection" / "opinion" / below / name, {"Detection_Conclusion": f"Error Type{kind}"})
    return outputs


def put(path: Path, content: object) -> None:
    """Write JSON, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def _verified(covered: bool) -> dict[str, str]:
    return {"Inference_Process": "...", "Inference_Conclusion": "knowable" if covered else "unknowable"}
