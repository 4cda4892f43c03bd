"""Rules give new names that pass the checks asked of a model's, and summaries made of the text's own sentences."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.data.names.capitals import Name
from perse.data.names.fictional import FAMILY_NAMES, FIRST_NAMES, INVENTED_PLACES, REAL_PLACES, people, places
from perse.data.names.names import Renamer, check_mapping, complete
from perse.errors import BadInput

pytest.importorskip("spacy", reason="needs the data extra")
pytest.importorskip("sumy", reason="needs the data extra")

from perse.data.names.recognizing import Recognizer, splitter
from perse.data.names.rules import extractive_summary, rule_mapping, rules_digest

PLOT = (
    "Nora Vance keeps the light at Gull Point with her brother Peter Vance. When the keeper of a rival tower, Captain Ilse Brandt, "
    "drowns off Iceland, Nora finds the logbook. Peter hides it. The harbour master asks Vance about the night of the storm, and "
    "she lies. In Reykjavik, Ilse's daughter Una Brandt reads the last page. Quillon is written there twice; nobody knows Quillon."
)


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return Recognizer.load()


def mapping_of(text: str, recognizer: Recognizer, *, seed: int = 0, who: str = "plot") -> dict[str, str]:
    return rule_mapping(text, recognizer.names([text])[0], seed=seed, who=who)


def test_a_family_keeps_one_new_family_name(recognizer: Recognizer) -> None:
    mapping = mapping_of(PLOT, recognizer)
    nora, peter = mapping["Nora Vance"].split(), mapping["Peter Vance"].split()
    assert nora[1] == peter[1] == mapping["Vance"]
    assert mapping["Nora"] == nora[0] and mapping["Peter"] == peter[0]
    assert mapping["Ilse"] == mapping["Ilse Brandt"].split()[0]
    assert mapping["Una Brandt"].split()[1] == mapping["Ilse Brandt"].split()[1] != nora[1]


def test_the_mapping_passes_the_check_and_no_person_or_place_is_left(recognizer: Recognizer) -> None:
    mapping = mapping_of(PLOT, recognizer)
    assert check_mapping(mapping, PLOT) == []
    renamed = Renamer(complete(mapping)).replace(PLOT)
    for old in ("Nora", "Vance", "Peter", "Ilse", "Brandt", "Una", "Iceland", "Reykjavik", "Gull Point", "Quillon"):
        assert old not in renamed
    assert renamed.count("logbook") == 1


def test_places_get_invented_places(recognizer: Recognizer) -> None:
    mapping = mapping_of(PLOT, recognizer)
    assert {mapping["Iceland"], mapping["Reykjavik"]} <= set(INVENTED_PLACES)


def test_other_names_are_renamed_if_they_occur_twice_and_are_no_organisation() -> None:
    text = "The FBI asks about Quillon. Quillon wrote to the Parker Brothers, the Parker Brothers to the FBI, of Zorn."
    names = [Name(name, "other") for name in ("FBI", "Quillon", "Parker Brothers", "Zorn")]
    assert list(rule_mapping(text, names, seed=0, who="x")) == ["Quillon"]


def test_a_name_that_is_not_in_the_text_or_is_an_ordinary_word_is_left_out() -> None:
    names = [Name("Absent Person", "person"), Name("The", "person"), Name("Ada", "person")]
    assert list(rule_mapping("The storm met Ada.", names, seed=0, who="x")) == ["Ada"]


def test_father_and_son_of_one_name_stay_two() -> None:
    names = [Name("Tom Reed Jr.", "person"), Name("Tom Reed Sr.", "person"), Name("Tom", "person")]
    mapping = rule_mapping("Tom Reed Jr. fears Tom Reed Sr. but Tom goes home.", names, seed=0, who="x")
    assert mapping["Tom Reed Jr."] == f"{mapping['Tom']} {mapping['Tom Reed Sr.'].split()[1]} Jr."
    assert mapping["Tom Reed Sr."].endswith(" Sr.")


def test_places_that_share_a_word_go_on_sharing_one() -> None:
    text = "From Hope Crossing to Ash Crossing it is a day, and Hope Crossing is smaller."
    mapping = rule_mapping(text, [Name("Hope Crossing", "place"), Name("Ash Crossing", "place")], seed=0, who="x")
    assert len({new.split()[-1] for new in mapping.values()}) == 1 and len(set(mapping.values())) == 2
    assert check_mapping(mapping, text) == []


def test_another_text_or_seed_gets_other_names_and_the_same_gets_the_same(recognizer: Recognizer) -> None:
    first = mapping_of(PLOT, recognizer)
    assert first == mapping_of(PLOT, recognizer)
    assert first != mapping_of(PLOT, recognizer, seed=1)
    assert first != mapping_of(PLOT, recognizer, who="other")


WORDS = st.sampled_from(
    [
        "Ada",
        "Brandt",
        "Vance",
        "Nora",
        "York",
        "New",
        "Paris",
        "Hope",
        "Henry",
        "II",
        "Jr.",
        "de",
        "of",
        "O'Neil",
        "J.",
        "Zoë",
        "Mörk",
        "Will",
    ]
)
NAMES = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=4), st.sampled_from(["person", "place", "other"])), min_size=1, max_size=8
)


@settings(max_examples=150, deadline=None)
@given(NAMES, st.integers(0, 3))
def test_every_mapping_passes_the_check(drawn: list[tuple[list[str], str]], seed: int) -> None:
    names = list({" ".join(words): Name(" ".join(words), kind) for words, kind in drawn if words[0][0].isupper()}.values())
    text = " and then ".join(name.text for name in names) + ", Oona said; Conway laughed in Alderley."
    mapping = rule_mapping(text, names, seed=seed, who="x")
    assert check_mapping(mapping, text) == []
    assert list(mapping) == [name.text for name in names if name.text in mapping]
    assert not {"oona", "conway"} & {word.casefold() for new in mapping.values() for word in new.split()}


# --- fictional names


@pytest.mark.slow
@given(
    st.integers(0, 5),
    st.text(max_size=5),
    st.integers(0, 40),
    st.sets(st.sampled_from(FIRST_NAMES + FAMILY_NAMES), max_size=40),
)
def test_fictional_names_are_the_same_again_and_avoid_what_they_are_told(
    seed: int, who: str, count: int, avoid: set[str]
) -> None:
    told = [word.upper() for word in avoid]
    found = people(seed, who, count, told)
    assert found == people(seed, who, count, told)
    words = [word for name in found for word in name.split()]
    assert len(words) == len(set(words)) == 2 * count
    assert not {word.casefold() for word in words} & {word.casefold() for word in avoid}


def test_the_draws_are_the_same_on_every_machine() -> None:
    assert people(7, "m1", 2) == ["Brian Shackleton", "Laurence Grosvenor"]
    assert places(7, "m1", 2) == ["Spindlewick", "Starlingmoor"]


def test_lists_never_run_dry() -> None:
    assert len(set(people(0, "x", 3000))) == 3000
    assert len(set(places(0, "x", 3000))) == 3000


def test_no_invented_place_is_a_real_one_and_no_list_repeats_itself() -> None:
    assert not set(INVENTED_PLACES) & set(REAL_PLACES)
    for names in (FIRST_NAMES, FAMILY_NAMES, INVENTED_PLACES, REAL_PLACES):
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[\w.' -]+", name) for name in names)


# --- summaries


def test_a_text_that_is_short_enough_stays_as_it_is() -> None:
    assert extractive_summary(" A  short\ntext. ", words=3) == " A  short\ntext. "
    assert extractive_summary("", words=3) == ""


def test_the_sentence_that_shares_most_with_the_others_is_kept() -> None:
    text = "The lamp failed. The storm broke the lamp and the tower. A cat slept. The storm hit the tower. Tea was late."
    assert "storm" in extractive_summary(text, words=8)
    assert "cat" not in extractive_summary(text, words=8)


def test_sentences_without_a_common_word_give_the_first_ones() -> None:
    assert extractive_summary("Alpha beta. Gamma delta. Epsilon zeta. Eta theta.", words=4) == "Alpha beta. Gamma delta."


def test_one_and_two_sentences_give_the_first() -> None:
    assert extractive_summary("First one is here. Second one is there.", words=4) == "First one is here."
    assert (
        extractive_summary("Only one long sentence stands in this text.", words=5)
        == "Only one long sentence stands in this text."
    )


def test_equal_sentences_are_taken_once() -> None:
    assert extractive_summary("Same words again here. " * 50, words=40) == "Same words again here."


def test_a_text_without_punctuation_gives_its_first_words() -> None:
    assert extractive_summary("one two three " * 100, words=5) == "one two three one two"


def test_a_summary_of_no_words_is_refused() -> None:
    with pytest.raises(BadInput, match="1 or more"):
        extractive_summary("Some text.", words=0)


SPLIT = splitter()
SENTENCE = st.lists(
    st.sampled_from(["the", "storm", "tower", "Nora", "cat", "7", "and", "broke", "?", "é", "塔"]), min_size=1, max_size=12
).map(lambda words: " ".join(words).capitalize() + ".")


@settings(max_examples=80, deadline=None)
@given(st.lists(SENTENCE, min_size=1, max_size=12), st.integers(1, 60))
def test_a_summary_is_made_of_the_texts_sentences_in_their_order(sentences: list[str], words: int) -> None:
    text = " ".join(sentences)
    summary = extractive_summary(text, words=words)
    assert summary == extractive_summary(text, words=words)
    assert summary
    if summary == text or summary == " ".join(text.split()[:words]):
        return
    assert len(summary.split()) <= 2 * words
    rest = summary
    for sentence in SPLIT(text).sents:
        rest = rest.removeprefix(sentence.text.strip()).strip()
    assert rest == ""


def test_the_digest_is_the_same_again() -> None:
    assert rules_digest() == rules_digest()
    assert re.fullmatch(r"[0-9a-f]{64}", rules_digest())
