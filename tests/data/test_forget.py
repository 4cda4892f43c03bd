"""A person who asks to leave is in no data set, export or run any more, and nobody else's examples change."""

import bz2
import gzip
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from builders import pointwise_examples
from kills import killed_at
from places import SAMPLES
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.forgetting.forget import forget
from perse.data.forgetting.lines import is_own
from perse.data.forgetting.remaining import remaining
from perse.data.persum.folder import load_persum
from perse.data.persum.options import PersumOptions
from perse.data.pseudonyms import pseudonym, salt_from_seed
from perse.errors import BadInput, RunMismatch
from perse.files.replacing import reading
from perse.files.runlog import RunLog, file_digest
from perse.records import example_lines

NAME = json.loads((SAMPLES / "reviews.jsonl").read_text("utf-8").splitlines()[0])["reviewer_id"]
HIDDEN = pseudonym(NAME, salt=salt_from_seed(0))


def built(out: Path, **changes: object) -> Path:
    options = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": out, "valid": 0.3}
    build_pointwise(PointwiseOptions(**(options | changes)))  # type: ignore[arg-type]
    return out


REWRITTEN = {
    "rewritten": 3, "texts": 4, "with_survivors": 0, "tries": {"anonymize": {"ok": 3}}, "writer": {"name": "rules"}, "recognizer": {"name": "rules"}
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rewriting", REWRITTEN),
        *[
            ("rewriting", value)
            for value in (5, "x", [], {**REWRITTEN, "tries": {"anonymize": 3}}, {**REWRITTEN, "writer": {}})
        ],
        *[("sources", value) for value in (5, [], {"plots": 5}, {"plots": {"name": "a"}})],
    ],
)
def test_a_person_leaves_a_set_whose_manifest_is_damaged_where_the_card_alone_looks(
    tmp_path: Path, field: str, value: object
) -> None:
    folder = built(tmp_path / "set")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, field: value}), "utf-8")
    assert forget(NAME, [folder])[0].records > 0
    card = (folder / "README.md").read_text("utf-8")
    assert ("3 of 4 texts came through" in card) is (value is REWRITTEN) and "## People" in card


@pytest.mark.parametrize("person", [NAME, HIDDEN])
def test_a_person_is_forgotten_by_name_or_pseudonym_and_the_others_stay(tmp_path: Path, person: str) -> None:
    before = load_folder(built(tmp_path / "set"))
    (gone,) = forget(person, [tmp_path / "set"])
    after = load_folder(tmp_path / "set")
    assert gone.records == sum(one.reviewer_id == HIDDEN for one in before.reviews.values()) > 0
    assert gone.examples == sum(row.reviewer_id == HIDDEN for row in before.rows) > 0
    for split in ("train", "valid"):
        others = [one for one in before.examples(split) if one.reviewer_id != HIDDEN]  # type: ignore[arg-type]
        assert after.examples(split) == others  # type: ignore[arg-type]
    for file in (tmp_path / "set").iterdir():
        assert HIDDEN.encode() not in file.read_bytes() and NAME.encode() not in file.read_bytes(), file
    assert after.manifest["forgotten"] == 1 and after.digest != before.digest
    assert after.manifest["counts"]["records"] == len(after.reviews)
    assert forget(person, [tmp_path / "set"])[0].records == 0
    other = sorted(one.reviewer_id for one in after.reviews.values())[0]
    assert forget(other, [tmp_path / "set"])[0].records > 0
    assert load_folder(tmp_path / "set").manifest["forgotten"] == 2


def test_a_comparing_annotator_is_forgotten(tmp_path: Path) -> None:
    build_pairwise(PairwiseOptions(pairs=SAMPLES / "pairs.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "set"))
    person = load_folder(tmp_path / "set").rows[0].reviewer_id
    assert forget(person, [tmp_path / "set"])[0].examples > 0
    assert all(row.reviewer_id != person for row in load_folder(tmp_path / "set").rows)


def test_a_data_set_with_a_secret_salt_asks_for_it(tmp_path: Path) -> None:
    built(tmp_path / "set", salt="secret")
    with pytest.raises(BadInput, match="built with a salt of its own; give it with --salt"):
        forget(NAME, [tmp_path / "set"])
    assert forget(NAME, [tmp_path / "set"], salt="secret")[0].records > 0


def scored(tmp_path: Path) -> tuple[Path, Path, list[str], list[str]]:
    """A run and an export of the side with the person; its lines, and the ids of the person's."""
    data = load_folder(built(tmp_path / "set"))
    split = next(row.split for row in data.rows if row.reviewer_id == HIDDEN)
    assert split is not None
    lines = list(example_lines(data.examples(split)))
    run, export = tmp_path / "run", tmp_path / "export.jsonl"
    run.mkdir()
    export.write_text("".join(lines), "utf-8")
    (run / "examples.jsonl").write_text("".join(lines), "utf-8")
    (run / "judgements.jsonl").write_text("".join(json.dumps({"id": json.loads(line)["id"]}) + "\n" for line in lines))
    (run / "manifest.json").write_text(json.dumps({"run": {"kind": "score"}}))
    return run, export, lines, [json.loads(line)["id"] for line in lines if HIDDEN in line]


@pytest.mark.parametrize("person", [NAME, HIDDEN])
def test_exports_and_scored_runs_lose_the_persons_lines_and_judgements(tmp_path: Path, person: str) -> None:
    run, export, lines, theirs = scored(tmp_path)
    inside = tmp_path / "set" / "valid.jsonl"
    inside.write_bytes(export.read_bytes())
    done = CliRunner().invoke(app, ["data", "forget", person, str(tmp_path / "set"), str(run), str(export)])
    assert done.exit_code == 0, done.output
    for file in (export, inside, run / "examples.jsonl", run / "judgements.jsonl"):
        left = file.read_text("utf-8").splitlines()
        assert len(left) == len(lines) - len(theirs)
        assert not any(one in line for one in [HIDDEN, *theirs] for line in left)


def test_a_name_without_the_data_set_that_hides_it_is_refused_rather_than_not_found(tmp_path: Path) -> None:
    run, export, *_ = scored(tmp_path)
    before = export.read_bytes()
    with pytest.raises(BadInput, match=f"under which pseudonym '{NAME}' stands; name the data set folder too"):
        forget(NAME, [run, export])
    assert export.read_bytes() == before
    (run / "manifest.json").write_text(
        json.dumps({"run": {"kind": "score"}, "context": {"data_folder": str(tmp_path / "set")}})
    )
    assert forget(NAME, [run])[0].examples > 0


def test_the_only_reader_of_a_side_can_leave_but_not_the_last_of_all(tmp_path: Path) -> None:
    data = load_folder(built(tmp_path / "set", max_reviewers=2))
    for row in data.rows:
        if row.split == "valid":
            forget(row.reviewer_id, [tmp_path / "set"])
            break
    left = load_folder(tmp_path / "set")
    assert left.examples("valid") == [] and left.examples("train")
    with pytest.raises(BadInput, match="nothing would be left without this person; delete it"):
        forget(left.rows[0].reviewer_id, [tmp_path / "set"])


def persum(folder: Path, *, person: str = "ann") -> Path:
    """Three samples: the person's own, and two whose products they reviewed."""

    def review(who: str, item: str = "p") -> dict[str, object]:
        return {"reviewer_id": who, "item_id": item, "review": f"{who} of {item}", "score": 5.0, "time": None}

    def sample(name: str, who: str, *others: str) -> dict[str, object]:
        scores = {"history_coverage": 5, "product_coverage": 5, "product_sentiment": 5}
        return {
            "id": name, "category": "C", "group": "High", "own": review(who), "scores": scores,
            "product_reviews": [review(other) for other in others], "history": [review(who, "q")],
        }  # fmt: skip

    samples = [sample("a", person, "bob"), sample("b", "bob", person, "cy"), sample("c", "cy", person)]
    folder.mkdir(exist_ok=True)
    (folder / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    manifest = {
        "schema": 1, "kind": "persum", "perse": "0", "options": PersumOptions(reviews=(Path("C.csv"),), out=folder, keep_names=True).for_manifest(),
        "sources": {}, "judge": {"model": "m", "adapter": None, "engine": "e", "digest": "d", "dtype": "d", "device": "cpu", "context": 1}, "judgements": {}, "judged_scores": {}, "left_out": {}, "groups": {},
        "funnel": {"C": {"reviews": 3}}, "samples": {"C": {"High": 3, "Low": 0, "HHPL": 0}}, "notes": [],
        "files": {"samples.jsonl": file_digest(folder / "samples.jsonl")},
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_persum_samples_lose_the_person_as_user_and_among_the_products_reviewers_and_are_counted_again(tmp_path: Path) -> None:
    (gone,) = forget("ann", [persum(tmp_path)])
    assert (gone.records, gone.examples) == (1, 2)
    (left,) = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert left["id"] == "b" and [one["reviewer_id"] for one in left["product_reviews"]] == ["cy"]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["samples"] == {"C": {"High": 1, "Low": 0, "HHPL": 0}} and manifest["forgotten"] == 1
    assert manifest["files"]["samples.jsonl"] == file_digest(tmp_path / "samples.jsonl")
    assert "1 sample" in (tmp_path / "README.md").read_text()


def test_samples_whose_manifest_was_made_by_hand_lose_the_person_and_the_card_stays_as_it_is(tmp_path: Path) -> None:
    folder = persum(tmp_path)
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "persum"}))
    (folder / "README.md").write_text("Ours.")
    (gone,) = forget("ann", [folder])
    assert (gone.records, gone.examples) == (1, 2) and (folder / "README.md").read_text() == "Ours."
    (left,) = load_persum(folder)
    assert left.id == "b"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["kind"], manifest["forgotten"]) == ("persum", 1) and not {"samples", "options"} & manifest.keys()


def test_a_place_that_holds_no_data_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="found no data set, scored run or file of examples"):
        forget("ann", [tmp_path])


def test_forgetting_touches_nothing_of_the_users_and_says_where_the_person_still_stands(tmp_path: Path) -> None:
    run, export, *_ = scored(tmp_path)
    data = tmp_path / "set"
    raw = data / "raw.jsonl"
    raw.write_text(json.dumps({"reviewer_id": NAME, "id": "1"}) + "\nno JSON\n")
    (data / "notes.md").write_text("mine")
    (data / "runs" / "first").mkdir(parents=True)
    (data / "runs" / "first" / "judgements.jsonl").write_text(json.dumps({"id": f"{HIDDEN}/1"}) + "\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "copy.jsonl").write_bytes(export.read_bytes())
    left = tmp_path / ".set.perse-new-0123abcd"
    left.mkdir()
    (left / "reviews.parquet").write_text(HIDDEN)
    before = {
        path: path.read_bytes() for path in (raw, data / "notes.md", data / "runs" / "first" / "judgements.jsonl", export)
    }
    done = CliRunner().invoke(app, ["data", "forget", NAME, str(data)])
    assert done.exit_code == 0, done.output
    assert {path: path.read_bytes() for path in before} == before and not left.exists()
    told = {
        line.removeprefix("still holds the person: ") for line in done.stderr.splitlines() if line.startswith("still holds")
    }
    assert told == {
        str(one)
        for one in (raw, data / "runs" / "first" / "judgements.jsonl", export, run, tmp_path / "elsewhere" / "copy.jsonl")
    }
    assert "what lies elsewhere" in done.stderr


def test_copies_that_are_packed_or_tables_or_other_names_of_a_file_are_named_too(tmp_path: Path) -> None:
    _, export, *_ = scored(tmp_path)
    data, copies = tmp_path / "set", tmp_path / "copies"
    copies.mkdir()
    content = export.read_bytes()
    (copies / "a.jsonl.gz").write_bytes(gzip.compress(content))
    (copies / "b.jsonl.bz2").write_bytes(bz2.compress(content))
    (copies / "c.parquet").write_bytes((data / "reviews.parquet").read_bytes())
    with zipfile.ZipFile(copies / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.jsonl", content)
    for name, mode in (("e.tgz", "w:gz"), ("f.tbz2", "w:bz2"), ("g.dat", "w:xz"), ("h.tar", "w")):
        with tarfile.open(copies / name, mode) as members:  # type: ignore[call-overload]
            members.add(copies / "a.jsonl.gz", "inner.jsonl.gz")
    (copies / "torn.jsonl.gz").write_bytes(gzip.compress(content)[:40])
    (tmp_path / "far").mkdir()
    os.link(export, tmp_path / "far" / "linked.jsonl")
    done = CliRunner().invoke(app, ["data", "forget", NAME, str(data), str(export), "--look-in", str(copies)])
    assert done.exit_code == 0, done.output
    said = done.stderr.splitlines()
    for name in ("a.jsonl.gz", "b.jsonl.bz2", "c.parquet", "d.zip", "e.tgz", "f.tbz2", "g.dat", "h.tar"):
        assert f"still holds the person: {copies / name}" in said
    assert f"could not be looked into: {copies / 'torn.jsonl.gz'}" in said
    assert f"may still hold the person: the other name of {export} (a hard link)" in said


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="this system has no /proc")
def test_looking_for_a_person_does_not_wait_for_files_of_the_kernel_that_never_end() -> None:
    assert remaining(["python"], [Path("/proc/self/task")]).places == ()  # each has a pagemap of 256 GB


def test_raw_files_that_have_the_name_in_any_spelling_are_named_and_longer_names_are_not(tmp_path: Path) -> None:
    name = "Jörg Venn"
    spelled = {
        "plain.csv": f"a,1\n{name},2\n".encode(),
        "tab.tsv": f"{name}\t2".encode(),
        "western.csv": f"{name};2".encode("latin-1"),
        "notes.txt": f"what {name} said".encode(),
        "escaped.json": json.dumps([name]).encode(),
        "quoted.csv": f'"{name}","2"'.encode(),
    }
    for file, content in {**spelled, "other.csv": f"{name}son,2\nMa{name},3".encode()}.items():
        (tmp_path / file).write_bytes(content)
    assert {path.name for path in remaining({name, HIDDEN}, [tmp_path]).places} == set(spelled)


@pytest.mark.parametrize("name", ["", " ", "Nobody Of This Name", "locked_drawer "])
def test_a_name_that_is_nowhere_is_no_success(tmp_path: Path, name: str) -> None:
    scored(tmp_path)
    before = contents(tmp_path / "set")
    done = CliRunner().invoke(app, ["data", "forget", name, str(tmp_path / "set")])
    assert isinstance(done.exception, BadInput) and ("nobody was forgotten" in str(done.exception) or not name.strip())
    assert contents(tmp_path / "set") == before


def test_a_file_of_something_else_is_named_with_what_to_give(tmp_path: Path) -> None:
    for name, content in (("x.jsonl.gz", gzip.compress(b"{}")), ("x.json", b'{\n "a": 1\n}\n')):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=rf"{name}.*give a file of examples or judgements"):
            forget(HIDDEN, [tmp_path / name])


def test_a_name_that_was_kept_is_forgotten_in_an_export_alone(tmp_path: Path) -> None:
    export = tmp_path / "valid.jsonl"
    export.write_text("".join(example_lines(pointwise_examples(2, 2, k=1))), encoding="utf-8")
    one, other = sorted({json.loads(line)["reviewer_id"] for line in export.read_text("utf-8").splitlines()})
    (gone,) = forget(one, [export])
    assert gone.examples == 2 and {json.loads(line)["reviewer_id"] for line in export.read_text("utf-8").splitlines()} == {
        other
    }


def test_a_packed_export_is_refused_with_what_unpacks_it(tmp_path: Path) -> None:
    packed = tmp_path / "valid.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(example_lines(pointwise_examples(2, 2, k=1))).encode()))
    before = packed.read_bytes()
    with pytest.raises(BadInput, match="is packed, .*; unpack it with gunzip, and give a file of examples"):
        forget(NAME, [packed])
    assert packed.read_bytes() == before


def test_a_line_separator_in_a_text_ends_no_line_of_an_export(tmp_path: Path) -> None:
    export = tmp_path / "valid.jsonl"
    lines = [*example_lines(pointwise_examples(2, 2, k=1))]
    one = json.loads(lines[0])["reviewer_id"]
    odd = {**json.loads(lines[0]), "query": "a\u2028b\x85c\x0bd"}
    export.write_text("".join([json.dumps(odd, ensure_ascii=False) + "\n", *lines[1:]]), encoding="utf-8")
    assert is_own(export)
    forget(one, [export])
    assert one not in export.read_text("utf-8")


def test_the_last_line_of_an_export_stays_though_no_newline_ends_it(tmp_path: Path) -> None:
    _, export, lines, theirs = scored(tmp_path)
    others = [line for line in lines if json.loads(line)["id"] not in theirs]
    export.write_text("".join([*(line for line in lines if line not in others), *others]).rstrip("\n"), "utf-8")
    forget(HIDDEN, [export])
    assert [json.loads(line) for line in export.read_text("utf-8").splitlines()] == [json.loads(line) for line in others]


def test_nobody_is_forgotten_in_a_run_that_is_being_written(tmp_path: Path) -> None:
    run, *_ = scored(tmp_path)
    before = (run / "judgements.jsonl").read_bytes()
    with (
        RunLog(run, {"kind": "score"}, lines="judgements.jsonl"),
        pytest.raises(RunMismatch, match="is being written by another"),
    ):
        forget(HIDDEN, [run])
    assert (run / "judgements.jsonl").read_bytes() == before


def contents(folder: Path) -> dict[str, bytes]:
    """What whoever opens the folder finds in it."""
    with reading(folder):
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.integration
def test_a_kill_at_any_moment_leaves_every_folder_whole_and_the_same_command_does_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)

    def copies(name: str) -> list[Path]:
        run = tmp_path / name / "run"
        run.mkdir(parents=True)
        for lines in ("examples.jsonl", "judgements.jsonl"):
            (run / lines).write_text("".join(json.dumps({"id": f"{who}-1"}) + "\n" for who in (HIDDEN, "bob")))
        (run / "manifest.json").write_text(json.dumps({"run": {"kind": "score"}}))
        return [run, persum(tmp_path / name / "persum", person=HIDDEN)]

    whole = copies("reference")
    old = [contents(place) for place in whole]
    forget(HIDDEN, whole)
    new = [contents(place) for place in whole]
    found = []
    died = True
    while died:
        places = copies(str(len(found)))
        died = killed_at(len(found), lambda places=places: forget(HIDDEN, places), places[0].parent)  # type: ignore[misc]
        now = [contents(place) for place in places]
        assert all(one in (was, becomes) for one, was, becomes in zip(now, old, new, strict=True))
        found.append([one == becomes for one, becomes in zip(now, new, strict=True)])
        forget(HIDDEN, places)
        assert [contents(place) for place in places] == new
        assert sorted(path.name for path in places[0].parent.iterdir()) == ["persum", "run"]
        assert not any(path.name.startswith(".") for place in places for path in place.iterdir())
    assert [False, False] in found and [True, False] in found and found[-1] == [True, True]


def test_a_place_that_is_refused_leaves_all_others_as_they_were(tmp_path: Path) -> None:
    run, export, *_ = scored(tmp_path)
    (tmp_path / "link.jsonl").symlink_to(export)
    last = tmp_path / "last"
    last.mkdir()
    (last / "samples.jsonl").write_text(json.dumps({"id": "a", "own": {"reviewer_id": HIDDEN}}) + "\n")
    (last / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "persum"}))
    places = [tmp_path / "set", run, export]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for refused, said in (
        (last, "nothing would be left"),
        (tmp_path / "link.jsonl", "is a link to .*export.jsonl, and is not written through"),
    ):
        with pytest.raises(BadInput, match=said):
            forget(HIDDEN, [*places, refused])
        assert {path: path.read_bytes() for path in before} == before


def test_a_persons_own_files_in_a_run_and_a_card_that_was_written_into_are_kept(tmp_path: Path) -> None:
    run, *_ = scored(tmp_path)
    (run / "raw.jsonl").write_text(json.dumps({"reviewer_id": HIDDEN}) + "\nno JSON\n")
    samples = persum(tmp_path / "persum", person=HIDDEN)
    (samples / "README.md").write_text("my licence")
    before = (run / "raw.jsonl").read_bytes()
    forget(HIDDEN, [run, samples, run])
    assert (run / "raw.jsonl").read_bytes() == before
    assert (samples / "README.kept-1.md").read_text() == "my licence" and "1 sample" in (samples / "README.md").read_text()


def test_what_killed_writers_left_of_the_person_goes_too_in_every_place(tmp_path: Path) -> None:
    run, export, *_ = scored(tmp_path)
    lost = [
        place / name
        for place in (tmp_path / "set", run, tmp_path)
        for name in (".export.jsonl.0123abcd.perse-tmp", ".README.md.0123abcd.perse-tmp")
    ]
    mine = run / ".thesis.999999999.tmp"
    for path in (*lost, mine):
        path.write_text(HIDDEN)
    forget(HIDDEN, [tmp_path / "set", run, export])
    assert [path for path in lost if path.exists()] == [] and mine.read_text() == HIDDEN


def test_what_only_its_owner_may_read_stays_so(tmp_path: Path) -> None:
    run, export, *_ = scored(tmp_path)
    private = [tmp_path / "set" / "reviews.parquet", run / "judgements.jsonl", export]
    before = [path.read_bytes() for path in private]
    for path in private:
        path.chmod(0o600)
    forget(HIDDEN, [tmp_path / "set", run, export])
    assert all(path.read_bytes() != was for path, was in zip(private, before, strict=True))
    assert [path.stat().st_mode & 0o777 for path in private] == [0o600] * 3


def test_what_forgetting_does_not_reach_in_a_run_is_named_by_file_and_an_export_that_came_later_is_reached(
    tmp_path: Path,
) -> None:
    run, export, _, theirs = scored(tmp_path)
    (run / "report").mkdir()
    for name in ("raw.jsonl", "report/report.html"):
        (run / name).write_text(HIDDEN + "\n")
    forget(HIDDEN, [tmp_path / "set"])
    export.rename(tmp_path / "set" / "export.jsonl")
    done = CliRunner().invoke(app, ["data", "forget", HIDDEN, str(tmp_path / "set")])
    assert done.exit_code == 0 and f"set: 0 records and {len(theirs)} examples removed" in done.stderr
    assert f"still holds the person: {run}\n" in done.stderr
    done = CliRunner().invoke(app, ["data", "forget", HIDDEN, str(run)])
    assert done.exit_code == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("still holds")]
    assert told == [f"still holds the person: {run / name}" for name in ("raw.jsonl", "report/report.html")]


def test_a_folder_to_look_in_that_is_not_there_is_said_before_anything_is_removed(tmp_path: Path) -> None:
    data = built(tmp_path / "set")
    before = contents_of(data)
    for missing in (tmp_path / "no" / "such", data / "examples.parquet"):
        done = CliRunner().invoke(app, ["data", "forget", NAME, str(data), "--look-in", str(missing)])
        assert done.exit_code != 0 and "is no folder" in str(done.exception)
    assert contents_of(data) == before


def test_a_slip_in_the_name_of_the_readers_file_makes_no_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_READERS", str(tmp_path / "typo.db"))
    done = CliRunner().invoke(app, ["data", "forget", NAME, "--readers"])
    assert done.exit_code != 0 and "names a file that is not there" in str(done.exception)
    assert not (tmp_path / "typo.db").exists()


def contents_of(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}
