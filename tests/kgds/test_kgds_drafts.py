"""Drafts of KGDS samples: which paragraphs stay, and what is a list of facts that stand alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from draft_builders import (
    FERRY,
    LIBRARY,
    PARAGRAPH,
    obedient,
    run,
    write_drafts,
)
from hypothesis import given
from hypothesis import strategies as st

from perse.errors import BadInput
from perse.kgds.building.consistency import consistency
from perse.kgds.building.decomposing import checked
from perse.kgds.building.drafts import agreed, read_drafts
from perse.questions.decompose import EXAMPLE_FACTS, Fault, ask, problems, read_facts
from perse.writing.loop import Bad, Fair, Good


def test_only_paragraphs_that_both_or_neither_call_supporting_stay(tmp_path: Path) -> None:
    drafts, paragraphs = agreed(read_drafts(write_drafts(tmp_path)), tmp_path)
    # Draft 1: Ann 1 4, Ben 1 2 4: paragraph 2 leaves, and 1 3 4 5 become 1 2 3 4.
    assert [(one.kept, one.supporting) for one in drafts] == [((1, 3, 4, 5), (1, 3)), ((1, 2), (2,))]
    # 7 paragraphs, 6 agreed on. By chance: Ann says yes to 3 of 7 and the other to 4, so both yes 12/49, both no 12/49;
    # kappa = (6/7 - 24/49) / (1 - 24/49) = (42 - 24) / 25 = 0.72.
    assert (paragraphs.asked, paragraphs.agreed, paragraphs.both_yes) == (7, 6, 3)
    assert (paragraphs.percent, paragraphs.kappa) == (85.71, 0.72)


def test_kappa_of_two_who_always_say_the_same_is_undefined() -> None:
    assert consistency([(True, True)] * 3).kappa is None
    assert consistency([]).percent is None
    assert consistency([(True, False), (False, True)]).kappa == -1
    # Chance: one says yes always, the other half of the time: expected agreement 1/2, observed 1/2.
    assert consistency([(True, True), (True, False)]).kappa == 0


def test_a_json_list_of_drafts_is_read_like_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "drafts.json"
    path.write_text(json.dumps([LIBRARY, FERRY], indent=2))
    assert read_drafts(path) == read_drafts(write_drafts(tmp_path))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("supporting", {"Ann": [1]}, "field 'supporting': 1 annotators (Ann), expected two"),
        ("supporting", {"Ann": [1], "Ben": [1], "Cem": [1]}, "3 annotators (Ann, Ben, Cem), expected two"),
        ("supporting", {"Ann": [1], "Ann ": [1]}, "1 annotators"),
        ("supporting", {"fact": [1], "Ben": [1]}, "is called 'fact'"),
        (
            "supporting",
            {"Ann": [9], "Ben": [1]},
            "field 'supporting.Ann': there is no paragraph 9; the article has paragraphs 1 to 5",
        ),
        ("supporting", {"Ann": [1], "Ben": [0]}, "field 'supporting.Ben': there is no paragraph 0"),
        ("supporting", {"Ann": [1, 1], "Ben": [1]}, "field 'supporting.Ann': paragraph 1 is listed twice"),
        ("supporting", {"Ann": ["1"], "Ben": [1]}, "field 'supporting.Ann.0': found \"1\", expected a number"),
        ("supporting", {"Ann": [True], "Ben": [1]}, "field 'supporting.Ann.0'"),
        ("supporting", {"Ann": [1], "Ben": [3]}, "field 'supporting': Ann and Ben agree on no supporting paragraph"),
        ("opinions", [], "field 'opinions': found an empty list, expected at least 1 entry"),
        ("opinions", None, "field 'opinions': field required"),
        ("opinions", ["Person1 likes **it"], "field 'opinions.0': a ** opens here and does not close"),
        ("article", [], "field 'article': found an empty list, expected at least 1 entry"),
        ("article", "One.", "field 'article': found a text, expected a list"),
        ("opinions", {"one": "yes"}, "field 'opinions': found an object, expected a list"),
        ("article", ["One.", "  \n"], "field 'article.1': the text is empty"),
        ("discussion", [], "field 'discussion'"),
        ("discussion", [{"participant": "P"}], "field 'discussion.0.utterance': field required"),
        ("url", "x", "field 'url': extra inputs are not permitted"),
    ],
)
def test_a_draft_that_does_not_fit_is_named_with_its_field(tmp_path: Path, field: str, value: object, said: str) -> None:
    draft = {**LIBRARY, field: value}
    if value is None:
        del draft[field]
    path = write_drafts(tmp_path, [FERRY, draft])
    with pytest.raises(BadInput) as error:
        agreed(read_drafts(path), path)
    assert str(error.value).startswith(f"{path}, draft 2: ") and said in str(error.value)


def test_a_draft_that_is_there_twice_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    def counting(message: str, seed: int) -> str:
        asked.append(message)
        return obedient(message, seed)

    others = {**LIBRARY, "supporting": {"Cem": [1], "Dan": [1]}, "opinions": ["Person1 is glad."]}
    # Only Ben calls paragraph 2 supporting, so it leaves, and the two would be one sample.
    at_the_boundary = {**LIBRARY, "article": [*LIBRARY["article"][:1], "The mayor likes dogs.", *LIBRARY["article"][2:]]}
    for again in (LIBRARY, others, at_the_boundary):
        path = write_drafts(tmp_path, [LIBRARY, FERRY, again])
        with pytest.raises(BadInput) as error:
            run(tmp_path, counting, drafts=path)
        assert str(error.value) == f"{path}, draft 3: article and discussion are those of draft 1; take one of the two out"
    assert not asked and not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("[]", "holds no drafts"),
        ("[1]", "draft 1: found a number, expected an object"),
        ("[null]", "draft 1: found null, expected an object"),
        ("[{", "not JSON"),
        ("[" * 100_000, "nested more than 100 deep"),
        ("[1" + "0" * 5000 + "]", "not JSON .*5001 digits, expected at most"),
        ('[{"opinions": [], "opinions": []}]', 'not JSON .*"opinions" is given twice in one object'),
    ],
    ids=["nothing", "an empty list", "a number", "null", "torn", "brackets alone", "a long number", "a name twice"],
)
def test_a_file_that_holds_no_drafts_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "drafts.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=said):
        read_drafts(path)


# --- decomposition


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts": ["A is  b.", "C is d."]}',
        '["A is b.", "C is d."]',
        'Here you are [as asked]:\n```json\n{"facts": ["A is b.",\n "C is d."]}\n```\nAnything else?',
    ],
)
def test_facts_are_read_from_an_object_or_a_list_whatever_stands_around_it(answer: str) -> None:
    assert read_facts(answer) == ("A is b.", "C is d.")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("A is b. C is d.", "no JSON object"),
        ('{"facts": ["A is b.", "C is', "no valid JSON object"),
        ('{"facts": ["A is b."]} {"facts": ["C is d."]}', "more than one JSON object"),
        ('{"facts": ["A is b."], "facts": ["C is d."]}', "once, and no other"),
        ('{"facts": ["A is b."], "rest": []}', "once, and no other"),
        ("{}", "once, and no other"),
        ('{"facts": "A is b."}', "no list of texts"),
        ('{"facts": ["A is b.", 2]}', "no list of texts"),
        ('{"facts": [{"fact": "A"}]}', "no list of texts"),
        ('{"facts": []}', "no fact"),
        ('["A is b.", " "]', "one without a word"),
        ('["A is b.", ",", "2"]', "one without a word"),
        ('["A \\ud83d"]', "escaped character"),
    ],
)
def test_what_is_no_list_of_facts_is_refused_with_a_sentence(answer: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_facts(answer)


def test_an_answer_of_brackets_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="nested"):
        read_facts('{"facts": ' + "[" * 100_000)


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1).map("a{}".format), min_size=1, max_size=5))
def test_facts_come_back_as_they_were_written_but_for_white_space(facts: list[str]) -> None:
    assert read_facts(json.dumps({"facts": facts})) == tuple(" ".join(fact.split()) for fact in facts)


PLAIN = "Honda Co. Ltd. met A. B. Smith at 8 p.m. on Monday."


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        ("Honda Co. Ltd. is listed.", None),
        ("The call takes place at 8 p.m. ET.", None),
        ('Halep said: "We won. They lost."', None),
        ("It is unclear who fired.", None),
        ("The match was won. Smith scored.", Fault.SEVERAL),
        ("He scored.", Fault.REFERRING),
        ("Their bank refused.", Fault.REFERRING),
        ("Who scored?", Fault.QUESTION),
        (EXAMPLE_FACTS[0], Fault.ECHOED),
        ("The bakery in Velm is new.", Fault.ECHOED),
    ],
)
def test_what_a_program_can_see_of_a_bad_fact(fact: str, kind: Fault | None) -> None:
    assert [problem.kind for problem in problems([fact], PLAIN)] == ([kind] if kind else [])


def test_the_names_of_the_example_may_be_those_of_an_article() -> None:
    assert problems(["The bakery in Velm is new."], "It is new.", article=["A bakery opens in Velm.", "It is new."]) == ()


def test_a_fact_that_stands_twice_is_asked_about_again() -> None:
    assert [problem.kind for problem in problems(["Smith won.", "Smith scored.", "smith  won."], PLAIN)] == [Fault.TWICE]


def test_a_fact_that_is_the_whole_paragraph_is_refused_if_that_has_several_sentences() -> None:
    several = "The match was won. Smith scored."
    refused = checked(json.dumps([several]), several)
    assert isinstance(refused, Bad) and refused.kind == Fault.WHOLE
    assert checked(json.dumps(["Smith scored."]), "Smith scored.") == Good(("Smith scored.",))


def test_a_bad_fact_is_asked_for_again_but_would_do() -> None:
    fair = checked(json.dumps(["He scored.", "Smith won."]), PLAIN)
    assert isinstance(fair, Fair) and fair.rank == 1 and fair.value == ("He scored.", "Smith won.")
    assert isinstance(checked("no", PLAIN), Bad)


def test_a_paragraph_is_asked_about_with_the_article_before_it() -> None:
    one, other = ask(["First.", "Second\nline."], 1), ask(["First.", "Second\nline."], 2)
    shared = "1. First.\n2. Second line.\n[Paragraph "
    assert one.partition(shared)[0] == other.partition(shared)[0] != one
    assert PARAGRAPH.search(one)
