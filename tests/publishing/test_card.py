"""The card says what is known, and that the rest is unknown; names from files are letters and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from builders import pairwise_examples, pointwise_examples
from command_line import perse
from evaluation_builders import answered, failed
from publishing_builders import Published, change

from perse.batch import comparing
from perse.batch.comparing import gather
from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.verdict import shown
from perse.publishing.base_model import hub_name, licence, public_name
from perse.publishing.card import card_text, for_weights, named_base, write_card
from perse.publishing.facts import read_facts
from perse.publishing.markdown import plain, word
from perse.publishing.measured import _intervals, when_scored
from perse.records import example_lines

pytestmark = pytest.mark.slow


def header(card: str) -> dict[str, Any]:
    start, end = card.index("---\n"), card.index("\n---\n")
    found = yaml.safe_load(card[start + 4 : end])
    assert start == 0 and isinstance(found, dict)
    return found


def lines_of(card: str, name: str) -> str:
    """The row of a table that begins with `name`."""
    [row] = [line for line in card.splitlines() if line.startswith(f"| {name} |")]
    return row


def test_the_card_tells_data_recipe_and_what_was_not_measured(judge: Published) -> None:
    card = write_card(judge.run).read_text()
    run = json.loads((judge.run / "manifest.json").read_text())["run"]
    assert (judge.run / "README.md").read_text() == card
    assert header(card) == {
        "library_name": "peft",
        "pipeline_tag": "text-generation",
        "tags": ["perse", "personalization", "llm-as-a-judge", "lora"],
    }, "neither a base model nor a licence is made up"
    assert card.startswith("---\n") and "# first: a judge made to answer for one reader at a time" in card
    assert lines_of(card, "data set") == "| data set | train.jsonl |"
    assert lines_of(card, "sha256") == f"| sha256 | {run['data_digest']} |"
    assert lines_of(card, "examples to train on") == "| examples to train on | 12 |"
    [*losses] = [line for line in map(json.loads, (judge.run / "log.jsonl").read_text().splitlines()) if "loss" in line]
    assert lines_of(card, "passes over them") == f"| passes over them | {losses[-1]['epoch']:.3g} |"
    assert lines_of(card, "reviewers") == "| reviewers | 4 |"
    assert lines_of(card, "too long, left out") == "| too long, left out | 0 |"
    assert lines_of(card, "optimizer steps") == "| optimizer steps | 8 |"
    assert lines_of(card, "processes together") == "| processes together | 1 |"
    assert lines_of(card, r"train.learning\_rate") == r"| train.learning\_rate | 0.02 |"
    assert lines_of(card, "watch.data") == "| watch.data | others.jsonl |"
    assert r"train.weight\_decay" not in card, "a default"
    assert "**This judge has not been scored against readers.**" in card
    assert "perse score --examples DATA --judge first --question pointwise_score --out first-valid\n" in card
    assert "perse models card first --scored first-valid\n" in card
    assert "perse ask --judge first --reviews mine.jsonl --text @plot.txt --question pointwise_score    # where" in card


def test_judgings_stand_with_the_examples_they_rest_on(judge: Published) -> None:
    lines = [
        {"step": 0, "eval_loss": 2.5, "eval_asked": 12.0, "eval_parse_rate": 0.5, "eval_kendall": -0.1, "eval_seconds": 1.0},
        {"step": 4, "eval_loss": 1.5, "eval_asked": 12.0, "eval_parse_rate": 1.0, "eval_kendall": 0.256, "eval_seconds": 1.0},
        {"step": 6, "eval_loss": 1.25, "eval_asked": 12.0, "eval_parse_rate": 1.0, "eval_kendall": 0.2, "eval_seconds": 1.0},
        {"step": 8, "eval_loss": 1.75, "eval_asked": 12.0, "eval_parse_rate": 1.0, "eval_seconds": 1.0},
        {"step": 8, "train_runtime": 3.0},
        {"step": 4, "best": "kendall", "value": 0.256},
    ]
    (judge.run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    card = card_text(judge.run)
    # Kendall strays by 0.67 / sqrt(12) = 0.193; 1.96 times that is 0.379
    assert "4 judgings of 12 examples of readers who were not trained on; shown are the first, the kept and the last." in card
    assert "Kendall of 12 examples strays by about 0.19 by chance, which makes an approximate 95% interval of ± 0.38." in card
    assert "The kept step was chosen for its number, which therefore flatters it." in card
    assert lines_of(card, "weights kept") == "| weights kept | those of step 4, the best judged |"
    assert lines_of(card, "0 (untrained)") == "| 0 (untrained) | 2.5 | 0.5 | -0.10 ± 0.38 |"
    assert lines_of(card, r"4 (kept)") == "| 4 (kept) | 1.5 | 1 | 0.26 ± 0.38 |"
    assert lines_of(card, "8") == "| 8 | 1.75 | 1 | undefined |"
    assert "| 6 |" not in card


def test_the_only_judging_of_trained_weights_chose_nothing(judge: Published) -> None:
    lines = [
        {"step": 0, "eval_loss": 2.5, "eval_seconds": 1.0},
        {"step": 8, "eval_loss": 1.5, "eval_seconds": 1.0},
        {"step": 8, "best": "loss", "value": 1.5},
    ]
    for log, told in ((lines, "2 judgings by"), (lines[1:], "1 judging by")):
        (judge.run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
        card = card_text(judge.run)
        assert f"{told} the loss alone of readers who were not trained on.\n" in card and "flatters" not in card
        assert lines_of(card, "weights kept").endswith("those of step 8, the only one judged after training began |")


def test_a_real_logs_judgings_are_read(judge: Published) -> None:
    facts = read_facts(judge.run)
    assert [line["step"] for line in facts.judgings] == [0, 4, 8] and facts.steps == 8
    assert "3 judgings of 12 examples" in card_text(judge.run)


def test_scored_runs_are_told_as_perse_evaluate_tells_them(judge: Published) -> None:
    card = card_text(judge.run, scored=[judge.scored])
    gathered = gather([judge.scored])
    result = evaluate_many(gathered.judges, gathered.folds)
    assert "has not been scored" not in card
    assert f"**{plain(result.verdict[0])}.**" in card
    own = next(row for row in result.rows if row.name == "first-valid (expected)")
    average = next(row for row in result.rows if row.name == "profile average")
    assert own.columns["kendall"].value is not None, "or nothing is tested"
    for row in (own, average):
        cells = [plain(shown(row.columns[key])) for key in ("kendall", "within_kendall", "pearson", "spearman", "mae")]
        assert lines_of(card, row.name).startswith(f"| {row.name} | {' | '.join(cells)} |")
    assert f"of 42 examples of {result.reviewers} reviewers were answered" in card
    assert "user\\+item bias: unavailable: " in card, "the scored examples came from a file"


def test_the_cards_header_lists_what_was_measured_for_the_hub(judge: Published) -> None:
    gathered = gather([judge.scored])
    result = evaluate_many(gathered.judges, gathered.folds)
    own = next(row for row in result.rows if row.name == "first-valid (expected)")
    header = yaml.safe_load(card_text(judge.run, scored=[judge.scored]).split("---\n")[1])
    [model] = header["model-index"]
    [listed] = model["results"]
    assert model["name"] == "first" and listed["dataset"] == {"type": "perse", "name": "first-valid"}
    values = {metric["type"]: metric["value"] for metric in listed["metrics"]}
    assert values["kendall"] == pytest.approx(own.columns["kendall"].value, abs=1e-4) and {"mae", "pearson"} <= set(values)
    assert "model-index" not in card_text(judge.run).split("---\n")[1]


@pytest.mark.parametrize("whose", ["another", "shuffled", "empty"])
def test_a_run_that_was_shown_other_profiles_is_no_result_of_the_judge_on_the_hub(judge: Published, whose: str) -> None:
    change(judge.scored, context__profile=whose)
    card = card_text(judge.run, scored=[judge.scored])
    assert "model-index" not in card.split("---\n")[1]
    first = card.split("### first-valid")[1].strip().splitlines()[0]
    assert first == "**Of this run: the profiles that were shown are not the readers' own.**"


def test_readers_that_were_trained_on_are_no_result_of_the_judge_on_the_hub(
    judge: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The scored examples came from a file: here is the training side that it lacks, with its own first reader in it.
    whole = comparing.gather([judge.scored])
    seen = replace(whole, folds=[replace(fold, train=list(fold.examples[:1])) for fold in whole.folds])
    monkeypatch.setattr(comparing, "gather", lambda folders: seen)
    card = card_text(judge.run, scored=[judge.scored])
    assert "model-index" not in card.split("---\n")[1]
    first = card.split("### first-valid")[1].strip().splitlines()[0]
    assert first.startswith("**Of this run: 1 of 14 reviewers are also in the training data") and "no test on unseen" in first


def test_a_judge_that_answered_little_lists_no_numbers_of_the_rest_for_the_hub(judge: Published) -> None:
    path = judge.scored / "judgements.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    nothing = {"label": None, "distribution": None, "expected": None, "status": "unparsed"}
    path.write_text("".join(json.dumps(line | (nothing if n < 4 else {})) + "\n" for n, line in enumerate(lines)))
    card = card_text(judge.run, scored=[judge.scored])
    assert "model-index" not in card.split("---\n")[1]
    assert f"**Of this run: {len(lines) - 4} of {len(lines)} examples were answered, and its numbers are of these.**" in card


@pytest.mark.parametrize("ok", [40, 48])
def test_the_accuracy_of_pairs_is_of_all_that_were_asked_and_its_interval_of_no_resamples(
    judge: Published, monkeypatch: pytest.MonkeyPatch, ok: int
) -> None:
    pairs = pairwise_examples(24)
    given = [
        answered(one.id, "AB"[n % 3 == 0], order_gap=float(n % 2)) if n < ok else failed(one.id) for n, one in enumerate(pairs)
    ]
    asked = replace(comparing.gather([judge.scored]), judges={"first-valid": given}, folds=[Fold(pairs, None)])
    monkeypatch.setattr(comparing, "gather", lambda folders: asked)
    scored = when_scored(read_facts(judge.run), judge.scored)
    assert (scored.ok, scored.asked, scored.beside) == (ok, 48, ())
    assert scored.intervals == "exact, of fewer pairs where those of one reviewer go together"
    drawn = _intervals(SimpleNamespace(kind="pairwise", resample="two-way"))
    assert drawn == "exact, of fewer pairs where those of one reviewer or about one text go together"
    assert set(scored.index) == ({"accuracy", "order_consistency"} if ok == 48 else {"accuracy"}), (
        "consistency is of the answered"
    )


def test_the_same_run_gives_the_same_card(judge: Published) -> None:
    assert card_text(judge.run, scored=[judge.scored]) == card_text(judge.run, scored=[judge.scored])


def test_a_scored_run_of_another_judge_is_refused(judge: Published) -> None:
    before = (judge.run / "README.md").read_text()
    change(judge.scored, run__judge__digest="0" * 64)
    with pytest.raises(
        BadInput, match=r"was judged with other weights than those of .*; give a folder that `perse score --judge"
    ):
        write_card(judge.run, scored=[judge.scored])
    assert (judge.run / "README.md").read_text() == before


def test_a_run_that_scored_the_adapter_on_its_base_is_this_judges(judge: Published) -> None:
    from perse.models.finding import judge_digest

    change(judge.scored, run__judge__digest=judge_digest(judge.base, judge.run / "adapter"))
    assert "### first-valid" in card_text(judge.run, scored=[judge.scored])


def test_a_run_of_unknown_weights_enters_no_card_unless_vouched_for(judge: Published) -> None:
    """A constant stub on a server, or the untrained base, would pass for the judge."""
    change(judge.scored, run__judge__digest="")
    with pytest.raises(BadInput, match="does not say which weights answered .*, so its numbers may be another judge's"):
        card_text(judge.run, scored=[judge.scored])
    done = perse("models", "card", judge.run, "--scored", judge.scored)
    assert done.returncode == 2 and "--unidentified" in done.stderr
    assert perse("models", "card", judge.run, "--scored", judge.scored, "--unidentified").returncode == 0
    card = (judge.run / "README.md").read_text()
    assert (
        "- which weights answered is not known, since the judge's server did not tell: whoever wrote this card vouches" in card
    )


@pytest.mark.parametrize("missing", ["log.jsonl", ".rows", "adapter", "merged", "checkpoints"])
def test_a_missing_part_costs_a_line_and_not_the_card(missing: str, judge: Published) -> None:
    place = judge.run / missing
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    card = write_card(judge.run).read_text()
    if missing == "log.jsonl":
        assert "What was judged while training is unknown" in card and lines_of(card, "weights kept").endswith("| unknown |")
    if missing == ".rows":
        assert lines_of(card, "examples to train on") == "| examples to train on | unknown |"


def test_every_set_of_a_mixture_is_told(judge: Published) -> None:
    sets = [{"path": "/work/books", "weight": 0.5}, {"path": "/work/plays|x", "weight": 2.0}]
    change(judge.run, run__config__data__mix=sets, run__mixed_digests="aaa bbb")
    rows = write_card(judge.run).read_text().partition("## Data")[2].partition("##")[0].strip().splitlines()
    assert rows[4:8] == [
        "| mixed with it | books, weight 0.5 |",
        "| sha256 | aaa |",
        r"| mixed with it | plays\|x, weight 2.0 |",
        "| sha256 | bbb |",
    ]
    assert rows[8].startswith("| sha256 of the training rows |")
    change(judge.run, run__mixed_digests="aaa")
    assert write_card(judge.run).read_text().count("| sha256 | unknown |") == 2, "whose it is is not known"


def test_a_manifest_with_next_to_nothing_is_told_as_unknown(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"run": {"kind": "train"}}')
    card = write_card(tmp_path).read_text()
    assert lines_of(card, "sha256 of the base") == "| sha256 of the base | unknown |"
    assert lines_of(card, "processes together") == "| processes together | unknown |"


@pytest.mark.parametrize("step", ["NaN", "Infinity", "[]", "{}", "1.5", '"2"'])
def test_a_log_of_steps_that_are_none_is_unknown(step: str, judge: Published) -> None:
    with (judge.run / "log.jsonl").open("a") as file:
        file.write(f'{{"loss": 1.0, "step": {step}}}\n')
    assert "What was judged while training is unknown" in card_text(judge.run)


def test_a_damaged_log_is_unknown(judge: Published) -> None:
    (judge.run / "log.jsonl").write_text("{}\nnot JSON\n{}\n")
    assert "What was judged while training is unknown" in card_text(judge.run)


def test_other_folders_are_refused(judge: Published, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds a run of perse score, not of perse train"):
        write_card(judge.scored)
    with pytest.raises(BadInput, match="is not a run folder"):
        write_card(tmp_path)


def test_names_from_files_are_letters_and_nothing_else(judge: Published) -> None:
    evil = "a|b\n# heading <script>alert(1)</script> [x](http://evil) `code`\n---\nlicense: mit"
    change(judge.run, run__config__data__path=f"/home/me/{evil}", run__question=evil, run__config__model__path=f"/x/{evil}")
    change(judge.run, environment__packages={evil: "1"}, context__world_size=evil)
    card = write_card(judge.run).read_text()
    assert "license" not in header(card)
    body = card[card.index("\n---\n") + 5 :]
    assert "<script" not in body and "\n# heading" not in body and "[x](" not in body and "\nlicense" not in body
    assert "/home/me" not in card
    code = body.split("```")
    assert len(code) == 5 and "code`" not in code[1], "two blocks of code, as ever"


def test_a_folder_named_like_yaml_stays_a_name(judge: Published, tmp_path: Path) -> None:
    place = tmp_path / "x: [y]\nlicense: mit"
    judge.run.rename(place)
    assert set(header(write_card(place).read_text())) == {"library_name", "pipeline_tag", "tags"}


def test_no_folder_of_this_machine_is_told(judge: Published, tmp_path: Path) -> None:
    card = card_text(judge.run, scored=[judge.scored])
    assert str(tmp_path) not in card and str(judge.base.parent) not in card and "/tmp/" not in card
    assert plain("the data /home/x/data is gone; see https://host/a/b") == "the data data is gone; see https://host/a/b"
    assert plain("~/runs/one and 3/4, ok/asked") == "one and 3/4, ok/asked"
    assert word("runs/first; rm -rf *") == "runs/first__rm_-rf__"


def test_an_embedded_base_is_named_with_its_licence(judge: Published, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    change(judge.run, run__config__model__path="smollm2-135m", context__model_is_folder=False)
    card = card_text(judge.run)
    assert header(card)["base_model"] == "HuggingFaceTB/SmolLM2-135M-Instruct" and header(card)["license"] == "apache-2.0"
    assert header(card)["base_model_relation"] == "adapter"
    assert "perse ask --judge HuggingFaceTB/SmolLM2-135M-Instruct+first" in card
    assert lines_of(card, "base model").endswith("(published under Apache-2.0) |")
    named = card_text(judge.run, base="owner/base")
    assert header(named)["base_model"] == "owner/base" and "license" not in header(named)


def test_base_models_are_called_what_others_can_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "local").mkdir(parents=True)
    assert hub_name("owner/local") is None and public_name("owner/local") == "local"
    assert hub_name("meta-llama/Llama-2-7b-chat-hf") == "meta-llama/Llama-2-7b-chat-hf"
    assert hub_name(str(tmp_path / "models" / "smollm2-135m")) == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert hub_name("/home/me/.cache/huggingface/hub/models--owner--some--name/snapshots/0123") == "owner/some--name"
    assert hub_name("/scratch/llama") is None and public_name("/scratch/llama") == "llama"
    assert licence("HuggingFaceTB/SmolLM2-135M-Instruct") == "Apache-2.0" and licence("owner/name") is None


def test_a_card_lies_beside_an_adapter_or_a_whole_model(judge: Published) -> None:
    card = card_text(judge.run, base="owner/base").replace("tags:\n", "language: en\ntags:\n")
    whole = for_weights(card, adapter=False)
    assert header(whole)["library_name"] == "transformers" and header(whole)["base_model_relation"] == "finetune"
    assert header(whole)["language"] == "en", "what a person added stays"
    assert whole[whole.index("\n---\n") :] == card[card.index("\n---\n") :]
    assert for_weights(whole, adapter=True) == card and named_base(whole) == "owner/base"
    assert for_weights("# mine\n", adapter=True) == "---\nlibrary_name: peft\n---\n\n# mine\n"


def test_full_training_is_told_as_a_whole_model(judge: Published) -> None:
    change(judge.run, run__config__lora=None)
    card = card_text(judge.run)
    assert header(card)["library_name"] == "transformers" and "lora" not in header(card)["tags"]
    assert lines_of(card, "trained") == "| trained | all weights |" and "+first" not in card


def test_dora_and_four_bits_are_told(judge: Published) -> None:
    assert lines_of(card_text(judge.run), "trained") == "| trained | a LoRA adapter |"
    change(judge.run, run__config__lora__dora=True, run__config__model__quantize="nf4")
    told = "a DoRA adapter on a base held as nf4; merged into the base's whole weights"
    assert lines_of(card_text(judge.run), "trained") == f"| trained | {told} |"


def test_a_judge_of_pairs_is_asked_by_files(judge: Published) -> None:
    change(judge.run, run__question="pairwise")
    card = card_text(judge.run)
    assert "which of two new texts it expects this reader to prefer" in card and "lenient or strict" not in card
    assert "perse score --judge first --examples examples.jsonl --out judged    # where" in card


def test_the_card_needs_no_torch(judge: Published) -> None:
    """The command line too: training's end must not wait for a card, nor a card for torch."""
    code = (
        "import sys; from pathlib import Path; from perse.publishing.card import write_card; "
        "write_card(Path(sys.argv[1])); sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(judge.run)], check=True, timeout=900)


def test_the_command_writes_the_card_with_what_was_scored(judge: Published) -> None:
    done = perse("models", "card", judge.run, "--scored", judge.scored)
    assert done.returncode == 0 and "written:" in done.stderr, done.stderr
    assert "### first-valid" in (judge.run / "README.md").read_text()


def test_examples_are_those_of_other_readers() -> None:
    """What the fixture stands on."""
    rows = [json.loads(line) for line in example_lines(pointwise_examples(18, 3, k=1))]
    assert not {row["reviewer_id"] for row in rows[:12]} & {row["reviewer_id"] for row in rows[12:]}
