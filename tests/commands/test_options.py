"""Options: groups become options of a command, choices are shown, completed and refused in one sentence, each is said once."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer
from command_line import perse
from typer.testing import CliRunner

import perse as package
from perse.commands import options, terminal
from perse.commands.app import app
from perse.commands.options import building, here, judging, kgds, training
from perse.commands.options.grouping import grouped
from perse.errors import BadInput
from perse.evaluation.stats.results import Resample
from perse.files.locking import locked
from perse.kgds.benchmark import PARADIGMS, PATTERNS
from perse.settings.serving import load_config
from perse.training.planning.hardware import CPU, GPUS

SCORE = ("score", "--examples", "x", "--judge", "j", "--out", "o")


@dataclass(frozen=True, kw_only=True)
class Colour:
    red: int = 0


@dataclass(frozen=True, kw_only=True)
class Size:
    colour: Colour
    height: Annotated[int, typer.Option(min=1)]
    width: Annotated[int, typer.Option(min=1)] = 3


def test_a_group_becomes_options_and_comes_back_as_one_value() -> None:
    came: list[Any] = []

    @grouped
    def draw(*, name: str, size: Size, bold: bool = False) -> None:
        """Draw."""
        came.append((name, size, bold))

    one = typer.Typer()
    one.command()(draw)
    assert CliRunner().invoke(one, ["n", "--height", "2", "--bold", "--red", "7"]).exit_code == 0
    assert came == [("n", Size(colour=Colour(red=7), height=2, width=3), True)]
    assert [*inspect.signature(draw).parameters] == ["name", "red", "height", "width", "bold"] and draw.__doc__ == "Draw."
    assert CliRunner().invoke(one, ["n", "--height", "0"]).exit_code == 2
    assert CliRunner().invoke(one, ["n"]).exit_code == 2  # a field without a default is required


def test_an_option_that_two_groups_have_is_refused_when_the_command_is_made() -> None:
    def draw(*, width: int, size: Size) -> None: ...

    with pytest.raises(TypeError, match="draw has an option twice: width"):
        grouped(draw)


def test_no_option_is_declared_twice_with_the_same_words() -> None:
    folder = Path(next(iter(package.__path__))) / "commands"
    words: dict[str, list[str]] = {}
    for file in folder.rglob("*.py"):
        for said in re.findall(r'help=\s*"([^"]{12,})"', file.read_text(encoding="utf-8")):
            words.setdefault(said, []).append(file.name)
    assert {said: files for said, files in words.items() if len(files) > 1} == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((*SCORE, "--dtype", "int8"), "--dtype is 'int8'; choose bfloat16, float16 or float32"),
        ((*SCORE, "--split", "test"), "--split is 'test'; choose train or valid"),
        ((*SCORE, "--k", "two"), "--k"),
        ((*SCORE, "--k", "-1"), "--k"),
        ((*SCORE, "--limits", "4"), "no such option: --limits"),
        (("score", "--judge", "j", "--out", "o"), "missing option '--examples'"),
        (("study", "order", "--judge", "x", "--examples", "e", "--out", "o", "--dtype", "int8"), "--dtype is 'int8'; choose"),
        (("study", "k-curve", "--examples", "e", "--out", "o", "--split", "test"), "--split is 'test'; choose train or valid"),
        (("compare", "a", "b", "--resample", "texts"), "--resample is 'texts'; choose auto, reviewers or two-way"),
        (("evaluate", "a", "--resample", "rows"), "--resample is 'rows'; choose auto, reviewers or two-way"),
        (("evaluate", "a", "--resamples", "99"), "--resamples"),
        (("report", "a", "--resample", "rows"), "--resample is 'rows'; choose auto, reviewers or two-way"),
        (("kgds", "verify", "b", "r", "--judge", "j", "--facts", "both"), "--facts is 'both'; choose single or paragraph"),
        (
            ("kgds", "generate", "b", "--writer", "w", "--out", "o", "--pattern", "x"),
            "--pattern is 'x'; choose ebs-aos or abs-aos",
        ),
        (("models", "merge", "run", "--out", "o", "--dtype", "int4"), "--dtype is 'int4'; choose bfloat16, float16 or float32"),
        (("scores",), "no such command 'scores'"),
        (("train", "--recipe"), "no such option: --recipe"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_one_sentence_and_exit_code_2(
    given: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = perse(*given)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("perse: ") and message in done.stderr and done.stderr.strip().count("\n") == 0
    assert done.stderr.strip().endswith("--help)")
    assert not list(tmp_path.iterdir())


def test_what_was_given_is_named_with_what_was_expected() -> None:
    for given, wrong in (("two", "two"), ("-1", "-1")):
        said = perse(*SCORE, "--k", given).stderr
        assert "--k" in said and wrong in said and "Value error" not in said and "Invalid value" not in said


def test_bare_commands_show_their_help() -> None:
    for given in ((), ("data",)):
        done = perse(*given)
        assert "Commands" in done.stdout and done.stderr == "" and done.returncode in (0, 2)  # by click's version


def test_help_shows_the_choices() -> None:
    shown = CliRunner().invoke(app, ["score", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "<train|valid>" in shown or "[train|valid]" in shown
    assert "bfloat16|float16|float32" in shown


@pytest.mark.parametrize("command", ["anonymize", "summarize", "export"])
def test_help_of_overwrite_says_what_is_replaced(command: str) -> None:
    shown = CliRunner().invoke(app, ["data", command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "Replace the file at --out, if it is one of this kind." in shown


def completed(*words: str) -> set[str]:
    """What a shell offers after `words`, the last of which is begun."""
    state = {"_PERSE_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("perse", *words)), "COMP_CWORD": str(len(words))}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'perse'; from perse.__main__ import main; main()"]
    done = subprocess.run(command, env=os.environ | state, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("score", "--dtype", "b"), {"bfloat16"}),
        (("study", "order", "--split", ""), {"train", "valid"}),
        (("kgds", "generate", "--pattern", "e"), {"ebs-aos"}),
        (("train", "--config", "embedded_l"), {"embedded_lora"}),
        (("plan", "--gpu", "h200"), {"h200"}),
        (("agre",), {"agreement"}),
    ],
)
def test_a_shell_completes_commands_choices_and_recipes(words: tuple[str, ...], offered: set[str]) -> None:
    assert offered <= completed(*words)


def test_choices_that_are_written_out_are_the_librarys_own() -> None:
    assert get_args(get_args(options.ResampleOption)[0]) == get_args(Resample)
    assert [one.as_pattern for one in kgds.PatternName] == [*PATTERNS] == [str(one) for one in kgds.PatternName]
    assert [one.as_paradigm for one in kgds.ParadigmName] == [*PARADIGMS] == [str(one) for one in kgds.ParadigmName]
    (gpu,) = training.Gpu.__metadata__
    assert set(re.findall(r"[\w-]+", gpu.help.partition("(")[0])) - {"or"} == {*GPUS, CPU}


def test_groups_have_the_names_of_what_they_become() -> None:
    """They are handed on by name, which a type checker does not see."""
    from dataclasses import fields

    from perse.data.options import PairwiseOptions, PointwiseOptions
    from perse.data.profiles.views import View
    from perse.data.rewriting.plots import RewriteOptions
    from perse.judging.judge import Judge, JudgeSettings
    from perse.studies.frame.running import Asking

    def names(*groups: Any) -> set[str]:
        return {field.name for group in groups for field in fields(group)}

    assert names(judging.ShownProfiles) == names(View) - {"order"}  # which a study counts through
    assert names(judging.Answering) <= names(JudgeSettings)
    assert names(judging.Loading) <= names(RewriteOptions) & names(Asking)
    of_hardware = {"concurrency"}
    assert names(judging.Loading) - of_hardware <= set(inspect.signature(Judge.load).parameters)
    assert names(building.Drawing, building.Reading) <= names(PointwiseOptions) & names(PairwiseOptions)
    assert names(building.Enough) <= names(PointwiseOptions)


@pytest.mark.parametrize("shape", ["{}", "--reviews={}"])
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path, shape: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = perse("data", "describe", shape.format(tmp_path / "pipe"))
    assert done.returncode == 2
    assert done.stderr.strip() == (
        f"perse: {tmp_path / 'pipe'} is a named pipe, for which a command could wait without end; give a file that holds the same"
    )


def test_a_pipe_of_the_shell_is_no_named_pipe() -> None:
    read, write = os.pipe()
    try:
        terminal._refuse_named_pipes([f"/dev/fd/{read}", f"--text=/proc/self/fd/{read}", "/dev/stdin"])
    finally:
        os.close(read)
        os.close(write)


def writing_options(command: Any, path: str = "perse") -> list[tuple[str, Any, Any]]:
    """Every option that says where a command writes: the command's name, its context and the option."""
    found = [(path, command.context_class(command), one) for one in command.params if one.name in ("out", "output", "cache")]
    for name, inner in getattr(command, "commands", {}).items():
        found += writing_options(inner, f"{path} {name}")
    return found


WRITING = writing_options(typer.main.get_command(app))


@pytest.mark.parametrize(("path", "context", "option"), WRITING, ids=[f"{path} {option.name}" for path, _, option in WRITING])
@pytest.mark.parametrize(
    "address", ["https://me:hunter2pass@h/x", "https:/me:hunter2pass@h/x", "runs/s3://hunter2pass", "S3:/hunter2pass"]
)
def test_no_command_writes_to_an_address_and_none_of_it_is_repeated(path: str, context: Any, option: Any, address: str) -> None:
    with pytest.raises(BadInput, match="is an address, expected a path on this machine") as error:
        option.process_value(context, address)
    assert "hunter2pass" not in str(error.value)


@pytest.mark.parametrize(("path", "context", "option"), WRITING, ids=[f"{path} {option.name}" for path, _, option in WRITING])
def test_a_home_is_written_to_whoever_reads_its_sign(
    path: str, context: Any, option: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A shell leaves `--out=~/x` as it is, and a folder named `~` here is one that somebody removes their home for."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(option.process_value(context, "~/x")) == tmp_path / "x"
    with pytest.raises(BadInput, match="there is no home ~nobody-at-all; give the whole path, from /"):
        option.process_value(context, "~nobody-at-all/x")
    with pytest.raises(BadInput, match="nothing is written to standard output"):
        option.process_value(context, "-")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\tb"])
def test_no_place_to_write_has_a_control_character_in_its_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="with a line break or another control character; give a name without") as refused:
        here(tmp_path / name)
    assert str(refused.value).isprintable()
    assert here(tmp_path / "日記 é.txt") == tmp_path / "日記 é.txt"


@pytest.mark.parametrize(("path", "context", "option"), WRITING, ids=[f"{path} {option.name}" for path, _, option in WRITING])
def test_a_folder_is_known_as_the_one_that_it_will_be(
    path: str, context: Any, option: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`mine/new/..` is not there, so that no check found a person's files in it, until `mine/new` was made on the way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "there").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "mine" / "there")
    for given, meant in {
        "mine/new/..": "mine",
        "mine/new/../../other": "mine/../other",
        "mine/a/b/../../..": "mine/..",
        f"{tmp_path}/mine/new/../x": f"{tmp_path}/mine/x",
        "mine/there/../x": "mine/there/../x",
        "link/..": "link/..",  # which is mine
        "../x": "../x",
        "../../new/../x": "../../x",
    }.items():
        assert str(option.process_value(context, given)) == meant


def test_every_command_that_writes_was_asked() -> None:
    assert len(WRITING) > 30 and {"perse score", "perse report", "perse data export", "perse kgds import"} <= {
        p for p, *_ in WRITING
    }


@pytest.mark.parametrize(
    "command", [("data", "pointwise", "--reviews", "reviews.csv"), ("score",), ("kgds", "build", "drafts.jsonl")]
)
@pytest.mark.parametrize("empty", [("--out", ""), ("--out=",)])
def test_an_empty_place_to_write_is_refused_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], empty: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = perse(*command, *empty)
    assert done.returncode == 2 and not [*tmp_path.iterdir()]
    assert done.stderr.strip() == "perse: --out is empty; give the file or folder to write (. is the folder that you are in)"


@pytest.mark.parametrize("root", ["/", "//", "/tmp/.."])
def test_the_root_of_the_disk_is_no_place_to_write(root: str) -> None:
    with pytest.raises(BadInput, match="the root of the disk; give a folder in it"):
        options.here(Path(root))


def test_links_that_lead_in_a_circle_are_places_like_others_until_they_are_opened(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert options.here(loop) == loop
    with pytest.raises(BadInput, match="is no folder; make it, or give one that is there"):
        load_config("embedded", [f"adapters_from={loop}"])
    with pytest.raises(BadInput, match="the root of the disk"), locked(Path("/")):
        pass


def test_a_folder_may_have_colons_in_its_name(tmp_path: Path) -> None:
    for name in ("run:1", "12:30/run", "C:/run"):
        assert options.here(tmp_path / name) == tmp_path / name and options.here(Path(name)) == Path(name)


def test_a_report_at_an_address_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = perse("report", "runs/a", "--out", "https://me:hunter2pass@h/x")
    assert done.returncode == 2 and "hunter2pass" not in done.stderr and not list(tmp_path.iterdir())
