"""A run in shards, begun or continued: what is asked of whom about which examples, kept so that any worker can join by the folder alone.

    RUN/manifest.json    what identifies the run, and how its judge is loaded
    RUN/judge.json       the judge as the first worker met it; others must meet the same

The examples are known by the bytes of their files, so that a run is continued without planning it again, and refused for other examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from perse.answering.base import JudgeSettings
from perse.batch.local import place_of
from perse.batch.sharded.adapters import Adapter, Named
from perse.batch.sharded.catalogue import make_catalogue
from perse.batch.sharded.catalogue_inputs import Candidate, CatalogueReader, CatalogueText
from perse.batch.sharded.inputs import Row, digest_of_inputs
from perse.batch.sharded.plan import make_plan, read_plan
from perse.batch.sharded.shards import FOLDER, Plan
from perse.engines.kind import LoadOptions, portable
from perse.errors import BadInput, ModelNotFound, RunMismatch
from perse.files.disk import aside, refuse_link, write_first, write_whole
from perse.files.locking import locked
from perse.files.runlog import MANIFEST, environment, make_folder, read_manifest, refuse_other_run
from perse.formats.json_text import read_object, shortened
from perse.formats.plain_files import State, refuse_changed
from perse.judging.judge import Judge
from perse.judging.loading import parse_judge, portable_name, weights_digest
from perse.questions import QUESTIONS, Question, question_for
from perse.records import PointwiseExample
from perse.secrets import redact_tree
from perse.stacking.file import LEAVE_OUT, STACKING, StackedData

LAYOUT = "shards"
_A_PAIR = PointwiseExample(id="READER/TEXT", reviewer_id="r", item_id="t", profile=(), query="a text")
"""What a question about a catalogue is asked about."""
JUDGE = "judge.json"
SERVED = "served:"
"""Begins the judge of a run that judge servers answer: what follows is the name that they serve it under."""
_FOLDERS = ("plan", "shards", "pieces", "attempts", "claims", "telemetry", "logs")
"""What is written in a run, and nowhere else."""
ROWS = 256
"""Rows of a shard, by default: some minutes of one GPU."""


@dataclass(frozen=True)
class Request:
    """What a run asks of whom.

    `inputs` describes the examples (`inputs_digest`, or a data set's digest with what is shown of it); `rows` gives them, once.
    """

    judge: str
    loading: LoadOptions
    settings: JudgeSettings
    inputs: Mapping[str, Any]
    question: str | None = None
    own: str | None = None
    """The judge's own question, which is asked where none is named."""
    files: Sequence[str] = ()
    """Digests (`digest_of_inputs`) of the files that the rows are read from, one by one, which are never replaced."""
    watched: Mapping[Path, State] = field(default_factory=dict)
    """What these files were like before they were digested: a run of another state is not begun."""
    shard_rows: int = ROWS
    limit: int | None = None
    adapters: Path | None = None
    """The folder of the adapters that rows name."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Of a data set: `data_folder`, where it lies, and its `data_digest`, so that baselines find its training side."""
    stacking: bool = True
    """Whether workers apply the stacking that lies beside the judge."""


@dataclass(frozen=True)
class Run:
    """A run in shards that was begun."""

    folder: Path
    plan: Plan
    question: Question
    settings: JudgeSettings
    judge: str
    loading: LoadOptions
    adapters: Mapping[str, Adapter]
    """Those that rows name."""
    stacking: bool = True
    """As in `Request`."""

    @property
    def served(self) -> bool:
        """Whether judge servers answer it, and no worker that loads the judge."""
        return self.judge.startswith(SERVED)

    @property
    def continuing(self) -> str:
        """The command that goes on with it."""
        if self.served:
            return f"perse score --driver http --servers URL,URL --out {self.folder} and its other options"
        return f"perse score work {self.folder}"


@dataclass(frozen=True)
class Pairs:
    """The rows of a catalogue; see `make_catalogue`."""

    readers: Iterable[CatalogueReader]
    texts: Iterable[CatalogueText]
    candidates: Iterable[Candidate] | None = None


def start(out: Path, request: Request, rows: Iterable[Row] | Pairs) -> Run:
    """Plan the run in `out`, or find it there.

    Raises:
        RunMismatch: `out` holds something else, or a run of other examples, of another judge or with other settings.
        BadInput: as `make_plan` or `make_catalogue`; a question that is not asked about such rows; or a file that is written to meanwhile.
    """
    judge = request.judge
    served = judge.startswith(SERVED)
    who = {"name": judge if served else portable_name(judge), "weights": "" if served else weights_digest(judge)}
    identity: dict[str, Any] = {
        "kind": "score",
        "layout": LAYOUT,
        "question": request.question,
        "inputs": dict(request.inputs),
        "limit": request.limit,
        "settings": asdict(request.settings),
        "judge": {**who, **request.loading.identity},
        "shard_rows": request.shard_rows,
        **({"fold": fold} if (fold := request.inputs.get("fold")) is not None else {}),
        **({"adapters": portable(str(request.adapters))} if request.adapters else {}),
        **({} if request.stacking else {"stacking": False}),
    }
    named = Named(request.adapters, judge) if request.adapters else None
    with locked(out / FOLDER):  # makes the folder, and removes it again where it is left empty
        make_folder(out)
        if (out / MANIFEST).exists():
            refuse_other_run(out, identity)
            return read(out)
        _refuse_strangers(out)
        asked = {"settings": identity["settings"], "judge": identity["judge"]}
        question, plan = _planned(out, request, rows, asked, named)
        refuse_changed(request.watched)
        context = {
            "question": question.name,
            "examples": plan.rows,
            "files": [*request.files],
            **request.data,
            "judge": judge if served or not parse_judge(judge).local else _placed(judge),
            **({"adapters": {name: vars(one) for name, one in named.used.items()}} if named else {}),
        }
        manifest = redact_tree({"run": identity, "context": context, "environment": environment()})
        write_whole(out / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return read(out)


def read(out: Path) -> Run:
    """The run in `out`.

    Raises:
        BadInput: there is none, or it is damaged, or has links in the place of its folders.
    """
    manifest = read_manifest(out)
    for place in (*(out / name for name in _FOLDERS), *(out / "shards").glob("??")):
        refuse_link(place)
    run, context = manifest.get("run", {}), manifest.get("context", {})
    if run.get("kind") != "score" or run.get("layout") != LAYOUT:
        raise BadInput(f"{out} holds no run in shards; give the folder of `perse score --driver`")
    try:
        told = dict(run["judge"])
        loading = LoadOptions(**{name: told[name] for name in LoadOptions().identity})
        settings = JudgeSettings(**run["settings"])
        name, judge = context["question"], context["judge"]
        adapters = {name: Adapter(**one) for name, one in context.get("adapters", {}).items()}
    except KeyError as error:
        raise BadInput(f"{out / MANIFEST} lacks {error}; score into another folder") from None
    except (BadInput, TypeError, ValueError, AttributeError):
        raise BadInput(f"{out / MANIFEST} has settings that no run has; score into another folder") from None
    if not isinstance(name, str) or name not in QUESTIONS:
        raise BadInput(f"{out / MANIFEST}: question is {shortened(name)}, which is none of perse's; score into another folder")
    if not isinstance(judge, str):
        raise BadInput(f"{out / MANIFEST}: judge is {shortened(judge)}, expected a name; score into another folder")
    plan, question = read_plan(out), QUESTIONS[name]
    if plan.rows != context.get("examples"):
        raise BadInput(
            f"{out / FOLDER} is of {plan.rows:,} examples, and {MANIFEST} of {context.get('examples')}; score into another folder"
        )
    return Run(out, plan, question, settings, judge, loading, adapters, stacking=run.get("stacking", True) is not False)


def refuse_own_inputs(run: Run, out: Path) -> None:
    """Keep what a run was planned from.

    Raises:
        BadInput: `out` is such a file, or equal to one.
    """
    told = read_manifest(run.folder).get("context", {}).get("files")
    if out.is_file() and isinstance(told, list) and digest_of_inputs(str(out)) in told:
        raise BadInput(f"{out} is what {run.folder} was planned from, which is never replaced; choose another name")


def is_sharded(folder: Path) -> bool:
    """Whether the run in a folder is one in shards."""
    return (folder / MANIFEST).is_file() and read_manifest(folder).get("run", {}).get("layout") == LAYOUT


def agree(run: Run, judge: Judge) -> None:
    """Check that a worker's judge is the one of the run's other workers; the first says which that is.

    Raises:
        RunMismatch: it has other weights, another engine or dtype, or other prompts.
        BadInput: its stacking is of another data set.
    """
    some = run.plan.examples(run.plan.shards[0])[:32]
    if judge.stacking is not None:
        refuse_other_data(run, judge.stacking.data, STACKING)
    mine = {
        "judge": judge.for_manifest,
        "prompts_sha256": judge.prompt_digest(run.question, some, run.settings),
    }
    agree_on(run, mine)


def refuse_other_data(run: Run, numbers: StackedData, where: object, *, leave_out: str = LEAVE_OUT) -> None:
    """That a stacking has the numbers of the data set that a run asks about; of a run of files nothing is known.

    Args:
        leave_out: as in `StackedData.refuse_other`.
    Raises:
        BadInput: it has those of another.
    """
    manifest = read_manifest(run.folder)
    if digest := manifest.get("context", {}).get("data_digest"):
        numbers.refuse_other(where, sha256=str(digest), fold=manifest.get("run", {}).get("fold"), leave_out=leave_out)


def agree_on(run: Run, mine: Mapping[str, Any]) -> None:
    """`agree`, of a judge of which this is known."""
    path = run.folder / JUDGE
    told = json.loads(json.dumps(redact_tree(dict(mine))))
    if write_first(path, json.dumps(told, indent=2) + "\n"):
        return
    known = read_object(path, remedy="score into another folder")
    if known != told:
        here, there = _named_values(told), _named_values(known)
        differing = sorted(
            f"{name} {json.dumps(here.get((part, name)))} here, {json.dumps(there.get((part, name)))} there"
            for part, name in here.keys() | there.keys()
            if here.get((part, name)) != there.get((part, name))
        )
        raise RunMismatch(f"{run.folder} has answers of another judge ({'; '.join(differing)}); score into another folder")


def _named_values(told: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Every value of a `judge.json`, by its part and its name there."""
    parts = {part: values if isinstance(values, dict) else {part: values} for part, values in told.items()}
    return {(part, name): value for part, values in parts.items() for name, value in values.items()}


def _planned(
    out: Path, request: Request, rows: Iterable[Row] | Pairs, asked: Mapping[str, Any], named: Named | None
) -> tuple[Question, Plan]:
    """What is asked, and the plan; `asked` is what answers depend on besides."""
    if isinstance(rows, Pairs):
        question = question_for([_A_PAIR], request.question, own=request.own)
        identity = json.dumps({"question": question.name, **asked}, sort_keys=True)
        return question, make_catalogue(
            out, rows.readers, rows.texts, rows.candidates, identity=identity, size=request.shard_rows
        )
    question, fitting = _chosen(rows, request.question, request.own)
    identity = json.dumps({"question": question.name, **asked}, sort_keys=True)
    size, seed = request.shard_rows, request.settings.seed
    known = _known_adapters(fitting, named)
    weights = named.weights if named else lambda adapter: adapter
    return question, make_plan(out, known, identity=identity, size=size, limit=request.limit, seed=seed, weights=weights)


def _known_adapters(rows: Iterable[Row], named: Named | None) -> Iterator[Row]:
    """The rows, each of which names no adapter, or one that is there.

    Raises:
        BadInput: another; file and line are named.
    """
    for row in rows:
        if row.adapter and named is None:
            raise BadInput(
                f"{row.file}, line {row.line}: the adapter '{row.adapter}' is named; say with --adapters where it is"
            )
        try:
            if named:
                named.weights(row.adapter)
        except (BadInput, ModelNotFound) as error:
            raise BadInput(f"{row.file}, line {row.line}: {error}") from None
        yield row


def _chosen(rows: Iterable[Row], name: str | None, own: str | None) -> tuple[Question, Iterator[Row]]:
    """The question, chosen by the first rows, and all rows, each checked to be one that it is asked about."""
    left = iter(rows)
    first = [*islice(left, 100)]
    question = question_for([row.example for row in first], name, own=own)

    def fitting() -> Iterator[Row]:
        yield from first
        for row in left:
            try:
                question_for([row.example], question.name)
            except BadInput as error:
                raise BadInput(f"{row.file}, line {row.line}: {error}") from None
            yield row

    return question, fitting()


def _placed(judge: str) -> str:
    """A judge's name with whole paths, so that a worker that runs elsewhere finds it."""
    parts = parse_judge(judge)
    engine = "" if parts.engine == "transformers" else f"{parts.engine}:"
    return engine + "+".join(place_of(part) or part for part in (parts.model, parts.adapter) if part)


def _refuse_strangers(out: Path) -> None:
    """A start that was killed leaves a plan without a manifest, and nothing else."""
    others = [
        one.name for one in out.iterdir() if one.name not in (FOLDER, aside(out / FOLDER).name) and not one.name.startswith(".")
    ]
    if others:
        raise RunMismatch(f"{out} is not empty and holds no run; choose another folder")
