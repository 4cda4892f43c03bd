"""One trace of a run, and its sample, by name; the message of one that is not there says which are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perse.data.persum.folder import Sample
from perse.errors import BadInput
from perse.rehearsal.folder import Trace
from perse.rehearsal.samples import read_samples

_FEW = 5


def trace_of(traces: Mapping[str, Mapping[str, Trace]], sample: str, *, method: str | None, run: Path) -> Trace:
    """Of the last of the run's methods unless `method` names another.

    Raises:
        BadInput: the run has no such method, or the method no such sample.
    """
    chosen = method or list(traces)[-1]
    if chosen not in traces:
        raise BadInput(f"{run} has no method '{chosen}'; it has {', '.join(traces)}")
    if sample not in traces[chosen]:
        raise BadInput(f"{run} has no sample '{sample}' under {chosen}; it has {_some(list(traces[chosen]))}")
    return traces[chosen][sample]


def sample_of(folder: Path, name: str) -> Sample:
    """Raises:
    BadInput: no PerSum folder, or one without this sample.
    """
    there = {sample.id: sample for sample in read_samples(folder).samples}
    if name not in there:
        raise BadInput(
            f"{folder} has no sample '{name}'; it has {_some(list(there))}; give the folder that the run was made from"
        )
    return there[name]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
