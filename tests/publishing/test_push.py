"""What arrives at a hub is what was shown, byte for byte, and nothing of this machine; the hub's own client sends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from builders import adapter_on
from command_line import perse
from fake_hub import TOKEN, Hub, Repository, fake_hub
from publishing_builders import Published, change

from perse.errors import BadInput
from perse.publishing.card import write_card
from perse.publishing.merging import merge_adapter
from perse.publishing.push import check_name, pack

OF_ADAPTER = {"README.md", "adapter_config.json", "adapter_model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}  # fmt: skip
OF_MODEL = OF_ADAPTER - {"adapter_config.json", "adapter_model.safetensors"} | {"config.json", "generation_config.json", "model.safetensors"}  # fmt: skip


@pytest.fixture
def hub() -> Iterator[Hub]:
    with fake_hub() as running:
        yield running


def push(hub: Hub, *arguments: object, token: str | None = TOKEN, url: str | None = None) -> subprocess.CompletedProcess[str]:
    """`perse models push` in a process of its own: the client reads its settings once."""
    environment = {
        **{key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"},
        "HF_ENDPOINT": url or hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": "/nonexistent",
        "COLUMNS": "200",
        **({} if token is None else {"HF_TOKEN": token}),
    }
    command = [sys.executable, "-m", "perse", "models", "push", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=900)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a refusal."""
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("perse: ")
    return last


@pytest.mark.slow
def test_an_adapter_arrives_byte_for_byte(judge: Published, hub: Hub) -> None:
    write_card(judge.run, scored=[judge.scored])
    (judge.run / "adapter" / "training_args.bin").write_bytes(b"a pickle")
    done = push(hub, judge.run, "--to", "owner/first")
    assert done.returncode == 0, done.stderr
    repository = hub.repositories["owner/first"]
    arrived = repository.files
    assert set(arrived) == OF_ADAPTER and not repository.private
    for name in ("adapter_model.safetensors",):
        assert arrived[name] == (judge.run / "adapter" / name).read_bytes()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert arrived[name] == (judge.run / "merged" / name).read_bytes()
    assert arrived["README.md"] == (judge.run / "README.md").read_bytes() and b"### first-valid" in arrived["README.md"]
    own = json.loads((judge.run / "adapter" / "adapter_config.json").read_text())
    assert own["base_model_name_or_path"] == str(judge.base), "as peft wrote it"
    assert json.loads(arrived["adapter_config.json"]) == {**own, "base_model_name_or_path": judge.base.name}
    for content in arrived.values():
        assert str(judge.base.parent).encode() not in content and str(judge.run.parent).encode() not in content
    for name, content in arrived.items():
        assert name in done.stderr and f"{len(content):,}" in done.stderr
    assert f"pushed: {hub.url}/owner/first" in done.stderr


@pytest.mark.slow
def test_a_merged_model_arrives_and_replaces_what_was_there(judge: Published, hub: Hub) -> None:
    old = {"model-00001-of-00002.safetensors": b"of an earlier push", "notes.txt": b"a person's"}
    hub.repositories["owner/first"] = Repository(private=True, files=dict(old))
    done = push(hub, judge.run, "--to", "owner/first", "--merged", "--private")
    assert done.returncode == 0, done.stderr
    arrived = hub.repositories["owner/first"].files
    assert set(arrived) == OF_MODEL | {"notes.txt"}
    for name in OF_MODEL - {"README.md"}:
        assert arrived[name] == (judge.run / "merged" / name).read_bytes(), name
    header = yaml.safe_load(arrived["README.md"].decode().split("---\n")[1])
    assert header["library_name"] == "transformers"


@pytest.mark.slow
def test_a_repository_is_made_private_if_that_is_asked(judge: Published, hub: Hub) -> None:
    assert push(hub, judge.run, "--to", "owner/first", "--private").returncode == 0
    assert hub.repositories["owner/first"].private


@pytest.mark.slow
def test_a_public_repository_gets_nothing_private(judge: Published, hub: Hub) -> None:
    hub.repositories["owner/first"] = Repository(private=False)
    assert "is there already and is public" in refused(push(hub, judge.run, "--to", "owner/first", "--private"))
    assert hub.repositories["owner/first"].files == {}


@pytest.mark.slow
def test_a_dry_run_asks_nobody_and_needs_no_token(judge: Published, hub: Hub) -> None:
    done = push(hub, judge.run, "--to", "owner/first", "--dry-run", token=None)
    assert done.returncode == 0 and "nothing was sent" in done.stderr and "adapter_model.safetensors" in done.stderr
    assert hub.asked == []


@pytest.mark.slow
def test_a_missing_or_wrong_token_is_one_sentence(judge: Published, hub: Hub) -> None:
    assert "there is no Hugging Face token here; run `hf auth login`" in refused(
        push(hub, judge.run, "--to", "a/b", token=None)
    )
    assert hub.asked == []
    said = refused(push(hub, judge.run, "--to", "a/b", token="hf_wrong"))
    assert "a/b was not pushed: HTTP 401, " in said and "check the name, the token's right to write and the network" in said


@pytest.mark.slow
def test_a_hub_that_fails_midway_is_one_sentence_and_nothing_is_committed(judge: Published, hub: Hub) -> None:
    hub.broken = True
    assert "owner/first was not pushed: HTTP 400, the disk of the hub is full" in refused(
        push(hub, judge.run, "--to", "owner/first")
    )
    assert hub.repositories["owner/first"].files == {}


@pytest.mark.slow
def test_no_hub_is_one_sentence(judge: Published, hub: Hub) -> None:
    said = refused(push(hub, judge.run, "--to", "owner/first", url="http://127.0.0.1:9"))
    assert "owner/first was not pushed: " in said and "refused" in said


@pytest.mark.slow
def test_a_folder_of_a_merge_is_sent_with_the_card_it_has(judge: Published, tmp_path: Path) -> None:
    write_card(judge.run, base="owner/base")
    made = merge_adapter(str(judge.run), tmp_path / "merged")
    adapter, whole = pack(made.folder), pack(made.folder, merged=True)
    assert set(adapter.files) == OF_ADAPTER and set(whole.files) == OF_MODEL
    settings = adapter.files["adapter_config.json"]
    assert isinstance(settings, bytes) and json.loads(settings)["base_model_name_or_path"] == "owner/base"
    (tmp_path / "merged" / "README.md").unlink()
    with pytest.raises(BadInput, match="has no card; write one as .*README.md"):
        pack(made.folder)


def test_a_runs_own_folders_are_the_run(judge: Published) -> None:
    assert pack(judge.run / "adapter").files.keys() == pack(judge.run).files.keys()
    assert pack(judge.run / "merged").files.keys() == pack(judge.run, merged=True).files.keys()


def test_settings_that_name_folders_of_this_machine_are_cleaned(judge: Published) -> None:
    place = judge.run / "merged" / "config.json"
    settings = json.loads(place.read_text())
    place.write_text(json.dumps({**settings, "_name_or_path": "/home/me/models/llama", "other": "~/x/y", "third": "C:\\a\\b",
                                 "deep": {"cache_file": ["/home/me/secret2"], "/home/me/key3": "file:///home/me/x4", "s": "s3://mine/bucket/y"},
                                 "four": "..\\home\\me\\z", "revision": "http://u:ZQs3cret77aa@h/x"}))  # fmt: skip
    sent = pack(judge.run, merged=True).files["config.json"]
    assert isinstance(sent, bytes) and b"/home/me" not in sent and b"ZQs3cret77aa" not in sent
    assert b"mine" not in sent and (json.loads(sent)["third"], json.loads(sent)["four"]) == ("b", "z")
    assert json.loads(sent)["_name_or_path"] == "llama" and json.loads(sent)["hidden_size"] == settings["hidden_size"]


def test_what_a_person_wrote_in_the_card_is_sent(judge: Published) -> None:
    place = write_card(judge.run)
    place.write_text(place.read_text().replace("library_name: peft", "language: en\nlibrary_name: peft") + "\nMine.\n")
    sent = pack(judge.run, merged=True).files["README.md"]
    assert isinstance(sent, bytes) and b"language: en" in sent and sent.endswith(b"\nMine.\n")


def test_a_card_that_is_no_text_is_one_sentence(judge: Published) -> None:
    card = judge.run / "README.md"
    card.write_bytes(card.read_bytes()[:300] + b"\xf6\x99" + card.read_bytes()[300:])
    with pytest.raises(BadInput, match=r"README.md is not UTF-8; save it as UTF-8, or move it away"):
        pack(judge.run, merged=False)


def test_a_run_without_a_card_is_sent_with_a_new_one(judge: Published) -> None:
    assert b"has not been scored" in pack(judge.run).files["README.md"]  # type: ignore[operator]
    assert b"### first-valid" in pack(judge.run, scored=[judge.scored]).files["README.md"]  # type: ignore[operator]


@pytest.mark.slow
def test_a_run_of_unknown_weights_is_sent_in_no_card_unless_vouched_for(judge: Published) -> None:
    change(judge.scored, run__judge__digest="")
    given = ("models", "push", judge.run, "--to", "owner/first", "--scored", judge.scored, "--dry-run")
    done = perse(*given)
    assert done.returncode == 2 and "does not say which weights answered" in done.stderr and "--unidentified" in done.stderr
    assert perse(*given, "--unidentified").returncode == 0
    card = pack(judge.run, scored=[judge.scored], unidentified=True).files["README.md"]
    assert isinstance(card, bytes) and b"- which weights answered is not known" in card and b"### first-valid" in card


@pytest.mark.parametrize("merged", [False, True])
def test_a_pipe_in_the_place_of_the_card_is_not_waited_for(judge: Published, merged: bool) -> None:
    place = write_card(judge.run)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(BadInput, match="README.md is no plain file; move it away"):
        pack(judge.run, merged=merged)


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("README.md", False),
        ("merged/NOTICE", False),
        ("merged/model.safetensors", True),
        ("adapter/adapter_config.json", False),
    ],
)
def test_a_link_that_leads_out_of_the_run_is_not_sent(judge: Published, tmp_path: Path, name: str, merged: bool) -> None:
    write_card(judge.run)
    file, outside = judge.run / name, tmp_path / "private"
    if file.exists():
        file.rename(outside)
    else:
        outside.write_text("private")
    file.symlink_to(outside)
    with pytest.raises(BadInput, match=f"{name} leads out of .*, to .*private, and is not sent; put the file itself there"):
        pack(judge.run, merged=merged)


def test_a_link_within_the_run_is_sent(judge: Published, tmp_path: Path) -> None:
    (judge.run / "adapter" / "adapter_model.safetensors").rename(judge.run / "weights")
    (judge.run / "adapter" / "adapter_model.safetensors").symlink_to(judge.run / "weights")
    (tmp_path / "linked").symlink_to(judge.run)
    assert "adapter_model.safetensors" in pack(tmp_path / "linked").files


@pytest.mark.parametrize("content", [b"", b"\x05\0\0\0\0\0\0\0hello"])
def test_weights_that_are_none_are_not_sent(judge: Published, content: bytes) -> None:
    (judge.run / "adapter" / "adapter_model.safetensors").write_bytes(content)
    with pytest.raises(BadInput, match="adapter_model.safetensors is damaged or no safetensors file"):
        pack(judge.run)


def test_what_is_no_judge_is_refused(judge: Published, tmp_path: Path) -> None:
    [checkpoint, *_] = (judge.run / "checkpoints").glob("checkpoint-*")
    with pytest.raises(BadInput, match="is a checkpoint, to go on training from"):
        pack(checkpoint)
    with pytest.raises(BadInput, match="there is no folder .*nowhere"):
        pack(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="holds no model: there is no config.json"):
        pack(tmp_path)
    with pytest.raises(BadInput, match="--scored has no card to go into"):
        pack(tmp_path, scored=[judge.scored])
    with pytest.raises(BadInput, match="has no card"):  # peft's own template says nothing
        pack(adapter_on(judge.base, tmp_path / "adapter"))
    (judge.run / "merged" / "config.json").unlink()
    with pytest.raises(BadInput, match="the training run .* is not finished; run the same `perse train` command again"):
        pack(judge.run)


def test_pickled_weights_are_never_sent(judge: Published) -> None:
    (judge.run / "adapter" / "adapter_model.safetensors").rename(judge.run / "adapter" / "adapter_model.bin")
    with pytest.raises(BadInput, match="holds no weights as safetensors"):
        pack(judge.run)


@pytest.mark.parametrize(
    "name", ["first", "", "/first", "a/b/c", "a/-b", "a b/c", "a/" + "x" * 97, "a/b.git", "../b"], ids=repr
)
def test_names_that_the_hub_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is no name on the hub; expected OWNER/NAME"):
        check_name(name)
    check_name("owner/first-2.0_a")
