"""An arm: one way to ask a study's questions, kept as a run folder of its own.

What differs between two arms is what a study varies: the profiles shown, the judge, the question, the settings. Each arm is
what `perse score` writes, so it continues after a kill, is not asked twice, and can be given to `perse evaluate`. The arms of
one judge are asked one after the other, so that it is loaded once and only one judge is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perse.batch.local import check_unseen, sample, score
from perse.batch.scored import read_run
from perse.data.dataset.folder import DEFAULT_VIEW, DataSet, is_data_folder, load_folder
from perse.data.load import LoadedExamples, load_examples
from perse.data.profiles.views import ProfileAspects, View
from perse.errors import BadInput
from perse.files.path_names import PathName
from perse.judgement import Judgement
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loading import short_name
from perse.progress import OnPart, unseen_part
from perse.questions import Question
from perse.records import Split

ARMS = "arms"

Answers = Mapping[str, Judgement]
"""The judgements of one arm by example id."""

LoadJudge = Callable[[str], Judge]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Examples, who judges them, what they are asked and how."""

    name: str
    """Its folder's name, a `PathName`."""
    loaded: LoadedExamples
    judge: str
    """As on the command line."""
    question: Question
    settings: JudgeSettings

    def __post_init__(self) -> None:
        PathName(self.name, what="an arm's name")


def ask_arms(arms: Sequence[Arm], out: Path, *, load: LoadJudge, on_progress: OnPart = unseen_part) -> dict[str, Answers]:
    """Judge what has no judgement yet, arm by arm, in OUT/arms/NAME; then read all of it back.

    Args:
        load: gives the judge of a name; called once for each.
    Raises:
        BadInput: two arms of one name, or a judge that was trained on the readers of another fold of this data.
        RunMismatch: an arm's folder holds other examples, another judge or other settings.
    """
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise BadInput(f"two arms have one name: {', '.join(sorted({name for name in names if names.count(name) > 1}))}")
    for name in dict.fromkeys(arm.judge for arm in arms):
        judge = load(name)
        for arm in (one for one in arms if one.judge == name):
            _ask(arm, judge, out / ARMS / arm.name, on_progress=on_progress)
        del judge  # before the next is loaded: two large ones need not fit
    return {arm.name: answers_of(out / ARMS / arm.name) for arm in arms}


def _ask(arm: Arm, judge: Judge, folder: Path, *, on_progress: OnPart) -> None:
    check_unseen(arm.judge, arm.loaded)
    told = partial(on_progress, arm.name)
    score(judge, arm.question, arm.loaded, folder, settings=arm.settings, on_progress=told)


def answers_of(run: Path) -> Answers:
    """A run folder's judgements by example id.

    Raises:
        BadInput: no such run, or a damaged one.
    """
    return {judgement.id: judgement for judgement in read_run(run).judgements}


def cautions(arms: Sequence[Arm], out: Path) -> list[str]:
    """What stands beside numbers of judges that readers of these arms chose (`ScoredRun.caution`), once where several arms have the same."""
    told = [(short_name(arm.judge), read_run(out / ARMS / arm.name).caution) for arm in arms]
    return list(dict.fromkeys(f"{judge}: {caution}" for judge, caution in told if caution))


@dataclass(frozen=True)
class Source:
    """One side of a data set, which can be shown in any view; the queries are the same in all, in the same order."""

    path: Path
    split: Split
    fold: int | None
    limit: int | None
    seed: int
    data: DataSet | None
    """None for a file of examples, which can be shown as it is only."""
    digest: str
    profile_aspects: ProfileAspects = "all"
    """What profiles of pairs show in every view: that of the judge that is asked."""

    @classmethod
    def open(
        cls, path: Path, *, split: Split = "valid", fold: int | None = None, limit: int | None = None, seed: int = 0
    ) -> Source:
        """Read a data set folder, once for all views, or a file.

        Raises:
            BadInput: neither, or damaged.
        """
        if is_data_folder(path):
            data = load_folder(path)
            return cls(path, split, fold, limit, seed, data, data.digest)
        loaded = load_examples(path, split=split, fold=fold)
        return cls(path, split, fold, limit, seed, None, loaded.digest)

    def seen(self, profile_aspects: ProfileAspects) -> Source:
        """The same for a judge that was trained with this view; a file shows what it shows."""
        return replace(self, profile_aspects=profile_aspects)

    def shown(self, view: View = DEFAULT_VIEW) -> LoadedExamples:
        """The examples that are asked: those with an answer to compare with, at most `limit`, drawn by seed.

        Raises:
            BadInput: no such view of this data, nothing to ask, or examples that are neither texts nor pairs.
        """
        return sample(self.whole(view), self.limit, seed=self.seed)

    def whole(self, view: View = DEFAULT_VIEW) -> LoadedExamples:
        """As `shown`, without limit."""
        if self.data is None:
            loaded = load_examples(self.path, split=self.split, fold=self.fold, view=view)
            folder = None
        else:
            view = replace(view, profile_aspects=self.profile_aspects)
            examples = [*self.data.examples(self.split, self.fold, view=view)]
            loaded = LoadedExamples(examples, self.digest, self.path, self.fold)
            folder = self.path
        for example in loaded.examples:
            if not example.verdict:
                raise BadInput(
                    f"{self.path} holds prompts or summaries; a study that varies the profile needs texts or pairs with "
                    "profiles, as `perse data pointwise` and `perse data pairwise` build them"
                )
        known = [example for example in loaded.examples if example.reference is not None]
        if not known:
            raise BadInput(
                f"{self.path} holds no {self.split} examples with a reference; a study compares with the readers' true answers"
            )
        return LoadedExamples(known, self.digest, folder, self.fold)

    @property
    def kind(self) -> str:
        """ "pointwise" or "pairwise"."""
        if self.data is not None:
            return self.data.kind
        return self.shown().examples[0].kind

    def folder(self, purpose: str) -> DataSet:
        """The data set folder.

        Raises:
            BadInput: it is a file of examples, whose profiles can only be shown as they were exported.
        """
        if self.data is None:
            raise BadInput(
                f"{self.path} is a file of examples; {purpose} needs the data set folder, which can show other views"
            )
        return self.data
