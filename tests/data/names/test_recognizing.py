"""Names are found by capitals and their company, and by any spaCy pipeline; the sentences here are all our own."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("spacy", reason="needs the data extra")

import spacy

from perse.data.names.capitals import Name
from perse.data.names.recognizing import Recognizer
from perse.errors import BadInput


@pytest.fixture(scope="module")
def rules() -> Recognizer:
    return Recognizer.load("rules")


def found(rules: Recognizer, text: str) -> dict[str, str]:
    return {name.text: name.kind for name in rules.names([text])[0]}


CASES = {
    "full_name_and_its_parts": (
        "Nora Vance waits. The storm finds Nora, and Vance is a name in the log.",
        {"Nora Vance": "person", "Nora": "person", "Vance": "person"},
    ),
    "title_is_stripped": ("She told Dr. Quillon of Captain Brandt.", {"Quillon": "person", "Brandt": "person"}),
    "title_alone_is_no_name": ("Then Father and the Captain wept.", {}),
    "place_of_the_gazetteer": ("They sail from Rio de Janeiro to Iceland.", {"Rio de Janeiro": "place", "Iceland": "place"}),
    "place_by_its_last_word": ("A hermit guards Cutter Falls.", {"Cutter Falls": "place"}),
    "place_before_a_place": ("He came home to Brackle, Ohio, late.", {"Brackle": "place", "Ohio": "place"}),
    "place_by_its_preposition": ("The circus stays in Brackle.", {"Brackle": "place"}),
    "sentence_start_without_support": ("Lighthouses burn. Keepers sleep.", {}),
    "sentence_start_in_lower_case_elsewhere": ("Quillon is a word. A quillon guards the hand.", {}),
    "sentence_start_seen_elsewhere": ("Quillon sleeps. They wake Quillon.", {"Quillon": "person"}),
    "sentence_start_first_name": ("Peter sleeps.", {"Peter": "person"}),
    "sentence_start_function_word": ("When Nora sings, Meanwhile Peter rows.", {"Nora": "person", "Peter": "person"}),
    "sentence_start_description": ("Fisherman Peter Vance rows.", {"Peter Vance": "person"}),
    "cast_in_brackets": ("Ash (Ilse Brandt) fights.", {"Ash": "person", "Ilse Brandt": "person"}),
    "particles_inside": (
        "She reads of Joan of Arc and Ludwig van Horn.",
        {"Joan of Arc": "person", "Ludwig van Horn": "person"},
    ),
    "epithet": ("They fear Ivan the Terrible.", {"Ivan the Terrible": "person"}),
    "roman_number": ("They crown Henry VIII in spring.", {"Henry VIII": "person"}),
    "initials": ("It is told by J.K. Quillon.", {"J.K. Quillon": "person"}),
    "hyphens": ("They follow Wei-Lin to the Paris-based firm.", {"Wei-Lin": "other", "Paris": "place"}),
    "apostrophe_inside": ("We met Sean O'Hara's wife.", {"Sean O'Hara": "person"}),
    "curly_possessive": ("It is Nora’s boat.", {"Nora": "person"}),  # noqa: RUF001
    "abbreviation": ("The FBI calls NASA.", {"FBI": "other", "NASA": "other"}),
    "nations_days_faiths_and_languages": (
        "On Monday an American and two French Catholics spoke Japanese at Christmas in May, I think.",
        {"May": "person"},  # a first name; what it costs to know it
    ),
    "nation_by_its_ending": ("A Brazilian and a Taiwanese sailor.", {}),
    "headline_in_capitals": ("THE KEEPER OF THE LIGHT\n\nNora rows.", {"Nora": "person"}),
    "headline_of_a_name": ("NORA VANCE AND THE SEA\n\nWe see Nora Vance.", {"Nora Vance": "person"}),
    "headline_in_title_case": ("Keeper Meets Storm Again Tonight\n\nNora rows.", {"Nora": "person"}),
    "organisation": ("He joins the Harbour Police.", {"Harbour Police": "other"}),
    "place_before_an_organisation": ("It won at the Toronto Film Festival.", {"Toronto": "place", "Film Festival": "other"}),
    "nothing": ("", {}),
    "marks_only": ("?! ... -- (*)", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rules_find(case: str, rules: Recognizer) -> None:
    text, expected = CASES[case]
    assert found(rules, text) == expected


def test_names_come_in_their_order_once_in_mixed_capitals_if_there_are_any(rules: Recognizer) -> None:
    text = "They call NORA at dawn. Peter answers Nora, and Nora and Peter row."
    assert rules.names([text]) == [[Name("Nora", "person"), Name("Peter", "person")]]


def test_the_names_of_a_text_do_not_depend_on_the_others(rules: Recognizer) -> None:
    texts = ["Quillon sleeps.", "They wake Quillon.", ""]
    assert rules.names(texts) == [rules.names([text])[0] for text in texts]
    assert rules.names([]) == []


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["Nora", "Dr.", "the", "of", "-", "'s", ".", "\n", "II", "Paris", "("])).map(" ".join)
)
def test_any_text_has_names_that_stand_in_it(rules: Recognizer, text: str) -> None:
    for name in rules.names([text])[0]:
        assert name.text and " ".join(name.text.split()) == name.text
        assert all(word in text for word in name.text.split())


def test_the_digest_and_the_name_say_what_finds_the_names(rules: Recognizer) -> None:
    assert rules.name == f"rules (spacy {spacy.__version__})"
    assert rules == Recognizer.load() and len(rules.digest) == 64


# --- pipelines


def saved(folder: Path, patterns: list[dict[str, object]]) -> Path:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(patterns)  # type: ignore[attr-defined]
    nlp.to_disk(folder)
    return folder


PATTERNS: list[dict[str, object]] = [
    {"label": "PERSON", "pattern": "Dr. Ilse Brandt"},
    {"label": "PERSON", "pattern": "Nora's"},
    {"label": "GPE", "pattern": "the Brackles"},
    {"label": "ORG", "pattern": "Harbour Police"},
    {"label": "NORP", "pattern": "Danish"},
    {"label": "DATE", "pattern": "Monday"},
]


def test_a_pipeline_is_loaded_from_its_folder_and_its_entities_cut_to_the_name(tmp_path: Path) -> None:
    recognizer = Recognizer.load(str(saved(tmp_path / "ner", PATTERNS)))
    text = "On Monday the Danish Harbour Police took Dr. Ilse Brandt from the Brackles in Nora's boat."
    assert recognizer.names([text, ""]) == [
        [Name("Harbour Police", "other"), Name("Ilse Brandt", "person"), Name("Brackles", "place"), Name("Nora", "person")],
        [],
    ]
    assert recognizer.name == f"en_pipeline 0.0.0 (spacy {spacy.__version__})"


@pytest.mark.slow
def test_the_digest_of_a_pipeline_changes_with_its_files(tmp_path: Path) -> None:
    one, again = (Recognizer.load(str(saved(tmp_path / name, PATTERNS))).digest for name in ("a", "b"))
    other = Recognizer.load(str(saved(tmp_path / "c", PATTERNS[:1]))).digest
    assert one == again != other != Recognizer.load().digest


def test_a_pipeline_that_is_not_installed_is_refused_with_the_remedy() -> None:
    with pytest.raises(BadInput, match="python -m spacy download xx_absent_sm, or give --ner rules"):
        Recognizer.load("xx_absent_sm")
    with pytest.raises(BadInput, match="python -m spacy download en_core_web_sm"):
        Recognizer.load("./no/such/folder")


def test_a_folder_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--ner rules"):
        Recognizer.load(str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["config.cfg", "meta.json", "tokenizer", "vocab/strings.json", "ner/model", "ner/cfg", "ner/moves"]
)
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"5", b"\x80", b"\xff\x00\x81"])
def test_a_damaged_pipeline_is_one_sentence(tmp_path: Path, file: str, content: bytes) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("PERSON")  # type: ignore[attr-defined]
    nlp.initialize()
    nlp.to_disk(tmp_path / "damaged")
    (tmp_path / "damaged" / file).write_bytes(content)
    try:
        Recognizer.load(str(tmp_path / "damaged"))  # some of these are sound enough for spaCy
    except BadInput as error:
        assert str(error).count("\n") == 0 and "--ner rules" in str(error)


def test_a_pipeline_that_finds_no_names_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(BadInput, match="no step of this pipeline finds names"):
        Recognizer.load(str(tmp_path / "blank"))


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(BadInput, match=r"pip install .*\[data\]'"):
        Recognizer.load()


@pytest.mark.skipif(importlib.util.find_spec("en_core_web_sm") is None, reason="en_core_web_sm is not installed")
def test_a_trained_pipeline_finds_people_and_places() -> None:
    names = Recognizer.load("en_core_web_sm").names(["Barack Obama was born in Hawaii."])[0]
    assert names == [Name("Barack Obama", "person"), Name("Hawaii", "place")]
