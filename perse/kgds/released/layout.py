"""Where things lie in what the authors of KGDS released: summaries, verifications and errors, by pattern, prompt and model.

outputs/paradigms/PATTERN/PROMPT/MODEL/N.*result.json              sample N's summary
outputs/verification/fact/abs-aos/PROMPT/MODEL/K.*abs-N_*.json     one file a paragraph, a list with one conclusion a fact
outputs/verification/opinion/PATTERN/PROMPT/MODEL/K.*aos-N_*.json  one file an opinion
outputs/detection/opinion/PATTERN/PROMPT/MODEL/K.*result.json      one file an opinion that is not covered
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from perse.errors import BadInput
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Benchmark, Paradigm, Pattern
from perse.kgds.released.files import WrongBenchmark, no_sample, numbered
from perse.strict import is_half, name_problem

PROMPTS: Mapping[Paradigm, str] = MappingProxyType({"structured": "structured-prompt", "reflection": "self-reflection"})


def is_released(root: Path) -> bool:
    """Whether `root` is the authors' `outputs`, or the folder that holds it."""
    return _outputs(root) is not None


def outputs_of(root: Path) -> Path:
    """The authors' `outputs`: `root`, or the folder of that name in it.

    Raises:
        BadInput: neither is.
    """
    outputs = _outputs(root)
    if outputs is None:
        raise BadInput(f"{root} is not the authors' release; expected `outputs` with paradigms/, verification/ and detection/")
    return outputs


def models_of(outputs: Path, *, models: Sequence[str] | None = None) -> dict[str, list[tuple[Pattern, Paradigm]]]:
    """The models by name, with the patterns and paradigms of which there is anything.

    Args:
        models: which; all by default.
    Raises:
        BadInput: one of these is not there.
    """
    found = {
        (folder.name, pattern, paradigm)
        for pattern in PATTERNS
        for paradigm in PARADIGMS
        for part in parts_of(outputs, pattern, paradigm=paradigm)
        if part.is_dir()
        for folder in part.iterdir()
        if folder.is_dir()
    }
    names = sorted({model for model, _, _ in found})
    for name in names:
        why = "it is not UTF-8" if is_half(name) else name_problem(name)
        if why or not name.isprintable():
            raise BadInput(
                f"{outputs} has a folder {name!a} in the place of a model, which cannot name one ({why or 'it has what cannot be printed'}); rename it"
            )
    if unknown := sorted(set(models or ()) - set(names)):
        raise BadInput(f"{outputs} has no model '{unknown[0]}'; it has {', '.join(names) or 'none'}")
    return {
        model: [(pattern, paradigm) for pattern in PATTERNS for paradigm in PARADIGMS if (model, pattern, paradigm) in found]
        for model in names
        if models is None or model in models
    }


def summary_files(
    outputs: Path, benchmark: Benchmark, *, model: str, pattern: Pattern, paradigm: Paradigm
) -> dict[int, Path] | None:
    """The file of each sample's summary; None if none were released.

    Raises:
        BadInput: an empty folder, a sample twice.
        WrongBenchmark: one that the benchmark does not have.
    """
    folder = parts_of(outputs, pattern, paradigm=paradigm)[0] / model
    if not folder.is_dir():
        return None
    found: dict[int, Path] = {}
    for number, path in numbered(folder):
        if number not in benchmark.samples:
            raise WrongBenchmark(no_sample(number, benchmark, path=path))
        if number in found:
            raise BadInput(f"{path}: sample {number} has another summary in the same folder; keep one of them")
        found[number] = path
    return found


def _outputs(root: Path) -> Path | None:
    for folder in (root, root / "outputs"):
        below = (parts_of(folder, pattern, paradigm=paradigm) for pattern in PATTERNS for paradigm in PARADIGMS)
        if any(part.is_dir() for parts in below for part in parts):
            return folder
    return None


def parts_of(outputs: Path, pattern: Pattern, *, paradigm: Paradigm) -> tuple[Path, Path, Path, Path]:
    """Folders of models: summaries, verified facts, verified opinions, detected errors."""
    below = Path(pattern, PROMPTS[paradigm])
    return (
        outputs / "paradigms" / below,
        outputs / "verification" / "fact" / below,
        outputs / "verification" / "opinion" / below,
        outputs / "detection" / "opinion" / below,
    )
