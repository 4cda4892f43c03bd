"""Which faults would the tests let through? A random sample of small changes to the core, each put to the tests.

    make mutants                                     or, once it has made its environment:
    python benchmarks/mutants.py --sample 150 --seed 1

Cosmic Ray lists every change it knows (another operator, a number off by one, a condition turned round, a decorator or a
loop's body gone, ...) of the modules of mutants.toml and makes those that are drawn, one at a time, in a copy of the
repository. All are put to the tests nearest to their module first, and what these let through to those of its neighbours; a
change that fails none has survived.
Not drawn are changes of what functions take and fields are, which is mypy's to look at, and what does not compile.

Stopped, the same command goes on. `--survivors` takes the tests as they are now and tries the survivors again. Survivors
that make no difference are listed in mutants.toml, with the reason, and are left out of the score.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import filecmp
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tomllib
import venv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

ROOT = Path(__file__).resolve().parent.parent
TOOL = "cosmic-ray==8.7.0"
STAGES = {"near": 240, "wide": 1800}
"""Seconds for the tests of each, the quick ones and the slow ones, which take a tenth of that: a change that has them run on for ever is noticed."""
Plan = dict[str, Any]
"""What mutants.toml says."""
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:schemathesis")
"""Without a plugin that takes a second to start and serves other tests."""
QUICK_FIRST = ("not slow and not integration", "slow and not integration")
"""What most changes fail comes before what takes long."""
NONE_CHOSEN = 5
"""Exit status of pytest where no test is of that kind."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=150, help="changes to draw")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--folder", type=Path, default=ROOT / "work" / "mutants", help="of the copy, and of what was found")
    parser.add_argument("--survivors", action="store_true", help="take today's tests and try the survivors again")
    parser.add_argument("--report", action="store_true", help="only say what was found so far")
    parser.add_argument("--put-to", choices=STAGES, help=argparse.SUPPRESS)  # what Cosmic Ray calls
    options = parser.parse_args()
    if options.put_to:
        sys.exit(put_to_tests(Path.cwd(), options.put_to))
    folder = options.folder.resolve() / f"seed-{options.seed}-of-{options.sample}"
    session = folder / "session.sqlite"
    if not options.report:
        tool = installed(options.folder.resolve() / "venv")
        if not (folder / "drawn.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            copied(folder / "tree")
            drawn(tool, folder, session, options.sample, options.seed)
        elif options.survivors:
            for part in ("tests", "benchmarks"):
                copied(folder / "tree", only=part)
            forget_survivors(session, folder / "tree")
            (folder / "near-done").unlink(missing_ok=True)
        for name in settings(folder / "tree")["modules"]:  # whoever stopped it may have left a change behind
            shutil.copy2(folder / "unchanged" / name, folder / "tree" / name)
        if not (folder / "near-done").exists():
            check_unchanged(folder / "tree", session, "near")
            run(tool, folder, "exec", "near.cfg", str(session))
            forget_survivors(session, folder / "tree")  # of the nearest tests, to be asked again
            (folder / "near-done").touch()
        check_unchanged(folder / "tree", session, "wide")
        run(tool, folder, "exec", "wide.cfg", str(session))
    report(found(session))


def installed(place: Path) -> Path:
    """Cosmic Ray in an environment of its own: the tests run in the one that runs this."""
    if not (place / "bin" / "cosmic-ray").exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", TOOL], check=True)
    return place / "bin" / "cosmic-ray"


def copied(tree: Path, only: str = "") -> None:
    """The files of the repository, those that git ignores left out, so that nothing is changed where people work."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", only or "."]
    for name in filter(None, subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)


def run(tool: Path, folder: Path, *arguments: str) -> None:
    subprocess.run([str(tool), *arguments], cwd=folder / "tree", env=environment(folder / "tree"), check=True)


def environment(tree: Path) -> dict[str, str]:
    """In which `tree` is perse, and a change is not missed because its bytecode is as old as the second."""
    return os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


# --- drawing ---


def drawn(tool: Path, folder: Path, session: Path, size: int, seed: int) -> None:
    """List all changes, draw `size` of them, and mark the others as not to be made."""
    tree = folder / "tree"
    modules = settings(tree)["modules"]
    paths = "".join(f'    "{name}",\n' for name in modules)
    for stage, seconds in STAGES.items():
        command = f"{sys.executable} benchmarks/mutants.py --put-to {stage}"
        (tree / f"{stage}.cfg").write_text(
            f'[cosmic-ray]\nmodule-path = [\n{paths}]\ntimeout = {2 * seconds + 60}\ntest-command = "{command}"\n'
            'excluded-modules = []\n[cosmic-ray.distributor]\nname = "local"\n'
        )
    for name in modules:
        (folder / "unchanged" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, folder / "unchanged" / name)
    run(tool, folder, "init", "near.cfg", str(session))
    written = {name: signatures(tree / name) for name in modules}
    with sqlite3.connect(session) as database:
        listed = database.execute(
            "SELECT module_path, start_pos_row, start_pos_col, operator_name, operator_args, occurrence, job_id FROM mutation_specs"
        ).fetchall()
        listed.sort()  # by all but the ids, which are new each time
        able = [change for change in listed if not written[change[0]].hold(change[1], change[2])]
        random.Random(seed).shuffle(able)
        chosen = compiling(tool, tree, able, size)
        leave = [(change[-1],) for change in listed if change[-1] not in chosen]
        database.executemany("DELETE FROM mutation_specs WHERE job_id = ?", leave)
        database.executemany("DELETE FROM work_items WHERE job_id = ?", leave)
    about = {"tool": TOOL, "seed": seed, "sample": size, "changes": len(listed), "modules": len(modules)}
    (folder / "drawn.json").write_text(json.dumps(about, indent=2) + "\n")
    print(json.dumps(about))


COMPILING = """
import json, sys
from pathlib import Path
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
changes, size = json.load(sys.stdin)
found = []
for module, _, _, operator, arguments, occurrence, job in changes:
    code = mutate_code(Path(module).read_text(), get_operator(operator)(**json.loads(json.loads(arguments))), occurrence)
    try:
        compile(code, module, "exec")
    except SyntaxError:
        continue
    found.append(job)
    if len(found) == size:
        break
print(json.dumps(found))
"""


def compiling(tool: Path, tree: Path, changes: list[tuple[object, ...]], size: int) -> set[str]:
    """The first `size` changes that leave a program: any test would notice the others, and none would have to."""
    python = str(tool.with_name("python"))
    given = json.dumps([changes, size])
    done = subprocess.run([python, "-c", COMPILING], input=given, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    return set(json.loads(done.stdout))


Span = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Signatures:
    """Where a module says what its functions take and its fields are, and the defaults among it."""

    said: list[Span]
    defaults: list[Span]

    def hold(self, row: int, column: int) -> bool:
        def within(spans: list[Span]) -> bool:
            return any(start <= (row, column) < end for start, end in spans)

        return within(self.said) and not within(self.defaults)


def signatures(path: Path) -> Signatures:
    said: list[Span] = []
    defaults: list[Span] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AnnAssign):
            said.append(span(node.annotation))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said.append(((node.lineno, node.col_offset), (node.body[0].lineno, node.body[0].col_offset)))
            defaults += [span(one) for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
    return Signatures(said, defaults)


def span(node: ast.expr) -> Span:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


# --- testing one change ---


def check_unchanged(tree: Path, session: Path, stage: str) -> None:
    """Nothing is noticed by tests that fail anyway."""
    plan = settings(tree)
    waiting = sorted({change.module for change in found(session) if change.noticed is None})
    paths = dict.fromkeys(path for module in waiting for path in tests_of(plan, module, stage))
    if paths and not passes(tree, list(paths), 4 * STAGES[stage]):
        sys.exit(f"the tests fail without any change in {tree}, so they can tell nothing; mend them and begin again without it")


def tests_of(plan: Plan, module: str, stage: str) -> list[str]:
    near, wide = plan["modules"][module]["near"], plan["wide"][plan["modules"][module]["wide"]]
    return near if stage == "near" else [path for path in wide if path not in near]


def put_to_tests(tree: Path, stage: str) -> int:
    """0 where every test passes: what Cosmic Ray calls survived."""
    names = settings(tree)["modules"]
    [changed] = [name for name in names if not filecmp.cmp(tree / name, tree.parent / "unchanged" / name, shallow=False)]
    print(f"changed: {changed}", flush=True)
    return not passes(tree, tests_of(settings(tree), changed, stage), STAGES[stage])


def passes(tree: Path, paths: list[str], seconds: int) -> bool:
    return all(passes_those(tree, paths, seconds, kind) for kind in QUICK_FIRST)


def passes_those(tree: Path, paths: list[str], seconds: int, kind: str) -> bool:
    command = [sys.executable, *PYTEST, "-m", kind, *paths]
    child = subprocess.Popen(command, cwd=tree, env=environment(tree), start_new_session=True)
    try:
        return child.wait(seconds) in (0, NONE_CHOSEN)
    except subprocess.TimeoutExpired:
        print(f"not done after {seconds} s", flush=True)
        return False
    finally:  # with what it started
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def settings(tree: Path) -> Plan:
    return tomllib.loads((tree / "benchmarks" / "mutants.toml").read_text())


# --- telling ---


@dataclass(frozen=True)
class Change:
    """One change: where, the line as it became, and whether it was noticed; None: not yet tried."""

    module: str
    row: int
    operator: str
    noticed: bool | None
    diff: str


def found(session: Path) -> list[Change]:
    with sqlite3.connect(session) as database:
        rows = database.execute(
            "SELECT module_path, start_pos_row, operator_name, test_outcome, diff FROM mutation_specs LEFT JOIN work_results "
            "USING (job_id) ORDER BY module_path, start_pos_row"
        ).fetchall()
    return [
        Change(path, row, name, None if end is None else end != "SURVIVED", diff or "") for path, row, name, end, diff in rows
    ]


def forget_survivors(session: Path, tree: Path) -> None:
    """But for those that are known to make no difference: no test will notice them."""
    known = alike(tree)
    with sqlite3.connect(session) as database:
        for job, module, diff in database.execute(
            "SELECT job_id, module_path, diff FROM mutation_specs JOIN work_results USING (job_id) WHERE test_outcome = 'SURVIVED'"
        ).fetchall():
            if (module, changed_line(diff)) not in known:
                database.execute("DELETE FROM work_results WHERE job_id = ?", (job,))


def alike(tree: Path) -> dict[tuple[str, str], str]:
    """Module and changed line of what makes no difference, and why."""
    return {(one["module"], one["line"]): one["why"] for one in settings(tree).get("equivalent", [])}


def changed_line(diff: str) -> str:
    return " ".join(line[1:].strip() for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++"))


def report(changes: list[Change]) -> None:
    known = alike(ROOT)
    tried = [change for change in changes if change.noticed is not None]
    survived = [change for change in tried if not change.noticed]
    no_difference = [change for change in survived if (change.module, changed_line(change.diff)) in known]
    for change in survived:
        why = known.get((change.module, changed_line(change.diff)))
        print(f"\n{change.module}:{change.row} {change.operator}{' makes no difference: ' + why if why else ' SURVIVED'}")
        print("\n".join(line for line in change.diff.splitlines()[4:] if line[:1] in "+-"))
    killed, counted = len(tried) - len(survived), len(tried) - len(no_difference)
    print(f"\nby module: {dict(sorted(Counter(change.module for change in survived if change not in no_difference).items()))}")
    print(
        f"drawn {len(changes)}, tried {len(tried)}, noticed {killed}, survived {len(survived)}, of these {len(no_difference)} alike"
    )
    if counted:
        interval = stats.binomtest(killed, counted).proportion_ci(method="exact")
        print(f"noticed {killed} of {counted}: {killed / counted:.1%} [{interval.low:.1%}, {interval.high:.1%}]")


if __name__ == "__main__":
    main()
