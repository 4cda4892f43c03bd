"""`perse rehearsal score`: ask a judge about every summary of a run, against all three sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.data.persum.folder import Sample
from perse.errors import BadInput
from perse.files.path_names import PathName
from perse.files.runlog import MANIFEST, run_of
from perse.judging.judge import Judge
from perse.judging.loop import JUDGEMENTS, read_judgements
from perse.progress import OnProgress, unseen
from perse.rehearsal.folder import PREFERENCES, SCORES, Trace, read_traces
from perse.rehearsal.judging import SIDES, Judgements, Measure, Wanted, labels_of, values_of
from perse.rehearsal.leniency.kept import finding_in
from perse.rehearsal.settings import WIDE, Labels

Scores = dict[str, dict[str, dict[Measure, float | None]]]
"""method -> sample -> what the judge gave; without those that have no summary."""


@dataclass(frozen=True)
class Scored:
    """The traces of a run with a judge's scores."""

    traces: Mapping[str, Mapping[str, Trace]]
    scores: Scores
    judge: str
    labels: Labels = WIDE
    """By which it scored."""
    leniency: str | None = None
    """What is known of the judge's, in words."""
    chose: bool = False
    """Whether the same judge chose the versions that are scored here: of several, the one that it liked best."""
    saw_user: bool = False
    """Whether the user's own review was among what chose the versions, whoever judged."""
    wrote: bool = False
    """Whether it wrote the summaries, too."""
    supervised: bool = False
    """Whether it was the personal judge, too, which said what stands under the method `personal`."""


def scores_folder(run: Path, name: str) -> Path:
    """Raises:
    BadInput: the name is none.
    """
    return run / SCORES / PathName(name, what="--name")


def score(
    judge: Judge,
    samples: Sequence[Sample],
    run: Path,
    *,
    digest: str,
    name: str,
    labels: Labels = WIDE,
    on_progress: OnProgress = unseen,
) -> Path:
    """Ask about every summary that has no scores yet; the folder of the answers.

    Raises:
        BadInput: no run, or one of other samples.
        RunMismatch: the folder has answers of another judge.
        EngineLost: the engine is gone for good.
    """
    folder = scores_folder(run, name)
    wanted = [one for _, of_one in wanted_of(samples, run, digest=digest).items() for one in of_one.values()]
    with Judgements(judge, folder, digest, labels) as judgements:
        judgements.ask(wanted, SIDES, on_progress=on_progress)
    return folder


def wanted_of(samples: Sequence[Sample], run: Path, *, digest: str) -> dict[str, dict[str, Wanted]]:
    """method -> sample -> the summary to be judged.

    Raises:
        BadInput: as `score`.
    """
    check_samples_of(run, digest)
    by_id = {sample.id: sample for sample in samples}
    found = read_traces(run)
    if strange := sorted({name for traces in found.values() for name in traces} - by_id.keys()):
        raise BadInput(f"{run} has a summary of '{strange[0]}', which is none of its samples; remove its lines from the traces")
    return {
        method: {name: Wanted(by_id[name], trace.summary) for name, trace in traces.items() if trace.summary is not None}
        for method, traces in found.items()
    }


def check_samples_of(run: Path, digest: str) -> None:
    """Raises:
    BadInput: the run is of other samples than those of this digest.
    """
    found = run_of(run).get("samples", {})
    if not isinstance(found, dict) or found.get("sha256") != digest:
        count = found.get("count") if isinstance(found, dict) else None
        raise BadInput(
            f"{run} was made of other samples (it has {count}); give the folder that it was made from, and the --limit that it was made with"
        )


def read_scores(samples: Sequence[Sample], run: Path, *, digest: str, name: str) -> Scored:
    """What a judge gave the summaries of a run.

    Raises:
        BadInput: as `score`, or nobody was asked under this name.
    """
    folder = scores_folder(run, name)
    if not (folder / MANIFEST).is_file():
        raise BadInput(f"{run} has no scores '{name}'; make them with `perse rehearsal score`")
    answers = read_judgements(folder / JUDGEMENTS)
    wanted = wanted_of(samples, run, digest=digest)
    asked, begun = run_of(folder), run_of(run)
    judge, labels = asked.get("judge", {}), labels_of(asked)
    scores = {
        method: {sample: values_of(one, answers, labels) for sample, one in of_one.items()} for method, of_one in wanted.items()
    }
    roles, traces = begun.get("roles", {}), read_traces(run)
    chosen = any(_chosen(trace) for of_one in traces.values() for trace in of_one.values())
    return Scored(
        traces,
        scores,
        "+".join(one for one in (judge.get("model"), judge.get("adapter")) if one and isinstance(one, str)) or "?",
        labels=labels,
        leniency=finding_in(folder),
        chose=chosen and _who(judge) == _who(begun.get("judge")),
        saw_user=chosen and begun.get("settings", {}).get("best") == "all",
        wrote=_who(judge) == _who(roles.get("writer"), names=("name", "adapter", "weights")),
        supervised=(run / PREFERENCES / MANIFEST).is_file() and _who(judge) == _who(run_of(run / PREFERENCES).get("judge")),
    )


def _chosen(trace: Trace) -> bool:
    """Whether its summary is one of several that had scores: of one alone nothing is chosen."""
    return len({one.summary for one in trace.versions if one.score is not None}) > 1


def _who(manifest: object, names: tuple[str, str, str] = ("model", "adapter", "digest")) -> tuple[object, ...] | None:
    """Model, adapter and weights, by the names that they have there; None if nobody is named."""
    if not isinstance(manifest, dict) or not manifest.get(names[0]):
        return None
    model, adapter, weights = (manifest.get(name) or None for name in names)
    return model, adapter, weights
