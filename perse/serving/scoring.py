"""Shards judged by judge servers: the `http` driver of a run in shards, with the same shards, claims and files as the others.

Each reader's questions go to one server (`Replicas`), Retry-After is honoured (`JudgeClient`), and when a server is lost its readers alone go
to others. What a server refuses of one example is that example's answer. When no server answers any more, one of the examples may have done it, as with a worker that dies:
the shard is asked again once a server is back, and halved if that happens twice (`perse.batch.sharded.running`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from perse.answering.base import failed
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.running import Asker, Places
from perse.batch.sharded.starting import SERVED, Run, agree_on, refuse_other_data
from perse.batch.sharded.working import work
from perse.engines.kind import Identity
from perse.errors import BadInput, EngineLost, RunMismatch
from perse.judgement import Judgement, Status
from perse.progress import OnProgress, unseen
from perse.questions import Question
from perse.records import Example, PairwiseExample, PointwiseExample, explain
from perse.secrets import printable
from perse.serving.client import JudgeClient, Problem, ServerError
from perse.serving.replicas import LOST, Replicas
from perse.serving.requests import judge_routes
from perse.serving.schemas import Version
from perse.stacking.file import StackedData

AT_ONCE = 2
"""Shards under way for each server, so that none waits for the last answers of one."""
BACK = 120.0
"""Seconds in which a server has to be back, before the run ends."""
BUSY = 600.0
"""Seconds that servers may be too busy for the same examples."""
MOST_LOSSES = 48
"""Times that all servers may be lost without a finished shard between them: to find one deadly row among 256 takes up to 18."""
LOOK_AGAIN = 1.0


def score_on_servers(
    run: Run, servers: Sequence[str], *, session: str, name: str, on_progress: OnProgress = unseen, **client: Any
) -> None:
    """Have judge servers judge what is left of the run.

    Args:
        servers: addresses, whose servers have the run's judge.
        name: of this worker; see `Holder.me`.
        client: settings of `JudgeClient`.
    Raises:
        RunMismatch: a server has another judge, or another stacking, than the run's answers are of.
        BadInput: a stacking is of another data set; no server answers; the judge or the question is not served; a server wants another key.
        EngineLost: the servers die again and again.
    """
    places, judge = Places(run.folder), run.judge.removeprefix(SERVED)
    _check(run, judge, servers, client)
    left = {shard.id: shard.rows for shard in run.plan.shards if not places.done(shard)}
    on_progress(run.plan.rows - sum(left.values()), run.plan.rows)
    losses = 0
    while left:
        with Replicas(servers, model=judge, **client) as replicas:
            asker = _Counted(run, replicas, Identity(judge), on_progress, sum(left.values())).asker()
            claims = Claims(run.folder / "claims", Holder.me(name))
            try:
                work(places, run.plan, asker, claims, session=session, at_once=AT_ONCE * len(servers))
            except EngineLost as error:
                before, left = left, {shard.id: shard.rows for shard in run.plan.shards if not places.done(shard)}
                losses = losses + 1 if len(left) == len(before) else 0
                if losses > MOST_LOSSES:
                    raise
                _wait_for_one(servers, client, str(error))
                continue
        return


class _Counted:
    """Asks the servers, and counts."""

    def __init__(self, run: Run, replicas: Replicas, identity: Identity, on_progress: OnProgress, left: int) -> None:
        self._run, self._replicas, self._identity = run, replicas, identity
        self._on_progress, self._left, self._lock = on_progress, left, threading.Lock()

    def asker(self) -> Asker:
        return Asker(self._run.question, self._identity, self._ask)

    def _ask(self, examples: Sequence[Example]) -> list[Judgement]:
        found = self._answered(examples)
        if len(examples) > 1:  # what was refused may have been the whole of a request: too much for one
            found = [
                self._answered([one])[0] if isinstance(said, Problem) else said
                for one, said in zip(examples, found, strict=True)
            ]
        judgements = [self._judgement(self._run.question, one, said) for one, said in zip(examples, found, strict=True)]
        with self._lock:
            self._left -= len(examples)
            self._on_progress(self._run.plan.rows - max(0, self._left), self._run.plan.rows)
        return judgements

    def _answered(self, examples: Sequence[Example]) -> list[Judgement | Problem]:
        """What the servers say, once none of them is too busy.

        Raises:
            EngineLost: none can be reached.
            BadInput: they are busy for too long.
        """
        question = self._run.question
        settings = {"question": question.name, **asdict(self._run.settings)}
        found: dict[int, Judgement | Problem] = {}
        until = time.monotonic() + BUSY
        while left := [n for n in range(len(examples)) if n not in found or _lost(found[n])]:
            asked = [_without_truth(examples[n]) for n in left]
            answers = self._replicas.ask_many(_kind(question), asked, **settings)
            found |= dict(zip(left, answers, strict=True))
            lost = [one for one in found.values() if isinstance(one, Problem) and one.code in LOST]
            if any(one.code == 0 for one in lost):
                raise EngineLost(next(one.message for one in lost if one.code == 0))
            if lost and time.monotonic() > until:
                raise BadInput(f"the servers are too busy ({lost[0].message}); the same command continues")
        return [found[n] for n in range(len(examples))]

    def _judgement(self, question: Question, example: Example, found: Judgement | Problem) -> Judgement:
        if isinstance(found, Judgement):
            return found
        if found.code in (401, 403, 404):  # of the request, and not of the example
            raise BadInput(found.message)
        return failed(self._identity, question, example, Status.ENGINE_ERROR, found.message)


def _without_truth(example: Example) -> Example:
    """What the reader said of it is nothing to a server."""
    return (
        example.model_copy(update={"reference": None}) if isinstance(example, PointwiseExample | PairwiseExample) else example
    )


def _lost(found: Judgement | Problem) -> bool:
    return isinstance(found, Problem) and found.code in LOST


def _kind(question: Question) -> str:
    """The route on which a question is asked; empty where it is on none."""
    return next((kind for kind, route in judge_routes().items() if question in route.questions), "")


def _check(run: Run, judge: str, servers: Sequence[str], client: dict[str, Any]) -> None:
    """Whether the servers that answer serve this judge, each the same, and are asked a question that they know."""
    if not run.judge.startswith(SERVED):
        raise BadInput(
            f"{run.folder} is of a judge that workers load, and not of one that is served; go on without --driver http"
        )
    if not _kind(run.question):
        raise BadInput(f"question {run.question.name} is not asked over HTTP; use --driver local")
    reached, why = 0, ""
    for url in servers:
        try:
            told = _version(url, client)
        except ServerError as error:
            if error.code not in LOST:
                raise BadInput(str(error)) from None
            why = str(error)
            continue
        reached += 1
        if judge not in told.models:
            raise BadInput(f"{url} serves no '{printable(judge)}'; choose from {printable(', '.join(told.models))[:500]}")
        served = told.models[judge]
        mine = {"model": judge, "sha256": served.sha256, "adapter": served.adapter}
        if stacking := served.stacking:
            mine["stacking"] = stacking.sha256
            numbers = StackedData(sha256=stacking.data_sha256, fold=stacking.fold)
            refuse_other_data(run, numbers, f"the stacking at {url}", leave_out="start the server with no_stacking=true")
        try:
            agree_on(run, {"judge": mine, "engine": told.engine, "perse": told.perse})
        except RunMismatch as error:
            raise RunMismatch(f"{url}: {error}") from None
    if not reached:
        raise BadInput(why)


def _version(url: str, client: dict[str, Any]) -> Version:
    """What a server says that it serves.

    Raises:
        ServerError: it does not answer, or refuses.
        BadInput: it says something else.
    """
    with JudgeClient(url, **{**client, "tries": 1}) as server:
        told = server.version()
    try:
        return Version.model_validate(told)
    except ValidationError as error:
        raise BadInput(f"{url} is no judge server of perse: its /version has {explain(error)}") from None


def _wait_for_one(servers: Sequence[str], client: dict[str, Any], why: str) -> None:
    """Wait until a server answers.

    Raises:
        BadInput: none does in time.
    """
    until = time.monotonic() + BACK
    while time.monotonic() < until:
        for url in servers:
            try:
                _version(url, client)
                return
            except ServerError:
                continue
        time.sleep(LOOK_AGAIN)
    raise BadInput(f"no server answers ({why}); what was finished is kept, and the same command continues")
