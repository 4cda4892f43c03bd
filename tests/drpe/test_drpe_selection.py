"""Two best and two worst of each document, by hand."""

from __future__ import annotations

import pytest
from drpe_correlate_builders import candidate, document, documents, graded
from places import SHARED

from perse.drpe.documents import read_documents
from perse.drpe.selection import select
from perse.errors import BadInput

SUMMEVAL = SHARED / "summeval" / "summeval.jsonl.gz"


def chosen(*grades: float) -> list[str]:
    """The systems that are taken of one document whose candidates have these means."""
    one = graded("d", {f"M{n}": grade for n, grade in enumerate(grades)})
    return [item.candidate.system for item in select(documents(one)).items]


def test_the_two_best_and_the_two_worst_are_taken_in_the_order_of_the_file() -> None:
    assert chosen(3, 5, 1, 4, 2, 3) == ["M1", "M2", "M3", "M4"]


def test_of_equal_candidates_the_earlier_one_is_taken() -> None:
    # Best: M0 (5), then M1 of M1 and M2 (4 each). Worst of M2, M3, M4, M5: M4 (1), then M3 of M3 and M5 (2 each).
    assert chosen(5, 4, 4, 2, 1, 2) == ["M0", "M1", "M3", "M4"]


def test_where_all_are_equal_the_first_four_are_taken_and_none_twice() -> None:
    assert chosen(3, 3, 3, 3, 3) == ["M0", "M1", "M2", "M3"]


def test_documents_of_which_the_order_decided_are_counted() -> None:
    open_one = graded("a", {"A": 5, "B": 4, "C": 4, "D": 2, "E": 1})  # C is out with B's mean
    clear = graded("b", {"A": 5, "B": 4, "C": 3, "D": 2, "E": 1})
    within = graded("c", {"A": 5, "B": 5, "C": 3, "D": 1, "E": 1})  # ties, but who is in is clear
    assert select(documents(open_one, clear, within)).tied == 1


def test_equal_grades_in_another_order_are_a_tie() -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit; the means are the same all the same."""
    one = document(
        "d",
        candidate("A", a=5, b=5, c=5),
        candidate("B", a=0.3, b=0.2, c=0.1),
        candidate("C", a=0.1, b=0.2, c=0.3),
        candidate("D", a=0.0, b=0.0, c=0.0),
        candidate("E", a=0.0, b=0.0, c=0.0),
    )
    found = select(documents(one))
    assert [item.candidate.system for item in found.items] == ["A", "B", "D", "E"]
    assert found.items[1].people == 0.2 and found.tied == 1


def test_a_document_with_three_candidates_is_left_out_and_counted() -> None:
    few, enough = graded("few", {"A": 1, "B": 2, "C": 3}), graded("enough", {"A": 1, "B": 2, "C": 3, "D": 4})
    found = select(documents(few, enough))
    assert {item.document.id for item in found.items} == {"enough"} and found.too_few == 1 and found.documents == 2
    everyone = select(documents(few, enough), which="all")
    assert len(everyone.items) == 7 and everyone.too_few == 0


def test_a_candidate_that_lacks_a_dimension_is_left_out_and_counted() -> None:
    one = document("d", *(candidate(name, a=n, b=1) for n, name in enumerate("ABCD")), candidate("E", a=9), candidate("F"))
    found = select(documents(one))
    assert [item.candidate.system for item in found.items] == ["A", "B", "C", "D"] and found.unscored == 2


def test_a_chosen_dimension_is_what_people_s_mean_is_of() -> None:
    one = document("d", *(candidate(name, a=n, b=-n) for n, name in enumerate("ABCDE")))
    assert [item.people for item in select(documents(one), which="all", dimensions=["b"]).items] == [0, -1, -2, -3, -4]
    with pytest.raises(BadInput, match=r"no candidate has a score for 'wit'; there are a, b"):
        select(documents(one), dimensions=["wit"])


def test_documents_without_people_s_scores_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadInput, match="no candidate has people's scores"):
        select(documents(document("d", candidate("A"))))
    with pytest.raises(BadInput, match="none of the 1 documents has 4 candidates .* give documents with more"):
        select(documents(graded("d", {"A": 1})))


@pytest.mark.skipif(not SUMMEVAL.exists(), reason="SummEval is not part of the project")
def test_summeval_gives_four_candidates_a_document() -> None:
    found = select(read_documents(SUMMEVAL))
    assert len(found.items) == 4 * 78 and (found.unscored, found.too_few) == (0, 0)
    assert found.dimensions == ("coherence", "consistency", "fluency", "relevance")
    for at in range(0, len(found.items), 4):
        four = found.items[at : at + 4]
        every = sorted(round(sum((one.scores or {}).values()) / 4, 12) for one in four[0].document.candidates)
        assert sorted(item.people for item in four) == [*every[:2], *every[-2:]]
