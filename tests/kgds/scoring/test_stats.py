from __future__ import annotations

import io

import pytest
from kgds_builders import benchmark
from places import SHARED
from rich.console import Console

from perse.kgds.benchmark import read_benchmark
from perse.kgds.stats import stats, stats_result
from perse.results.terminal import print_result

REAL = SHARED / "kgds" / "KGDS.first60.json"


def test_two_samples_are_counted_as_by_hand() -> None:
    found = stats(benchmark())
    # Articles of 4 and 2 paragraphs, of which 2 and 1 support; 2 and 3 turns of 2 people each; 3 and 2 opinions.
    assert (found.samples, found.paragraphs, found.paragraphs_per_sample) == (2, 6, 3)
    assert (found.supporting, found.nonsupporting) == (3, 3)
    assert (found.participants_per_sample, found.utterances_per_sample) == (2, 2.5)
    # Key 4 + 2, non-key 1, repeated 1; in the others 3 + 1 of type 0 and one of type 4.
    assert found.supporting_facts.by_type == {0: 0, 1: 6, 2: 1, 3: 1, 4: 0, 5: 0, 6: 0}
    assert found.nonsupporting_facts.by_type == {0: 4, 1: 0, 2: 0, 3: 0, 4: 1, 5: 0, 6: 0}
    assert (found.supporting_facts.total, found.nonsupporting_facts.total, found.nonsupporting_facts.masked) == (8, 5, 1)
    assert (found.opinions, found.opinions_per_sample) == (5, 2.5)
    # Two opinions of sample 1 hold 1 + 2 references between **, one of sample 2 holds 1.
    assert (found.opinions_with_references, found.references) == (3, 4)
    # "At last! This was overdue." has 5 words, the other turn 9 + 5; sample 2 has 9 + 7 + 3.
    assert found.discussion_words_per_sample == (5 + 14 + 9 + 7 + 3) / 2


def test_the_first_60_samples_have_the_counts_of_their_file() -> None:
    if not REAL.exists():
        pytest.skip(f"the real benchmark is not at {REAL}")
    found = stats(read_benchmark(REAL))
    assert (found.samples, found.paragraphs, found.supporting) == (60, 821, 266)
    inside, others = found.supporting_facts.by_type, found.nonsupporting_facts.by_type
    assert inside == {0: 0, 1: 998, 2: 528, 3: 7, 4: 0, 5: 0, 6: 0}
    assert others == {0: 2805, 1: 0, 2: 0, 3: 12, 4: 41, 5: 3, 6: 53}
    assert (found.opinions, found.opinions_with_references) == (571, 527)


def test_the_tables_show_every_count() -> None:
    shown = io.StringIO()
    print_result(stats_result(stats(benchmark())), Console(file=shown, width=80))
    lines = [line.split() for line in shown.getvalue().splitlines()]
    assert ["paragraphs", "6", "3.00"] in lines
    assert ["masked", "(types", "4", "+", "5", "+", "6)", "0", "1", "(1", "+", "0", "+", "0)"] in lines
    assert "the paper counts tokens" in shown.getvalue()
