"""What the agreement study says of a judge that answered little, or nearly always the same."""

from __future__ import annotations

import pytest
from kgds_builders import benchmark

from perse.judgement import Judgement, Status, Tokens
from perse.kgds.agreement.pairs import Pair, draw_pairs
from perse.kgds.agreement.rows import FACTS, LISTED, Way
from perse.kgds.agreement.tables import agreement_result

DRAWN = draw_pairs(benchmark(12), limit=None, seed=0)
FACT_PAIRS = DRAWN.of("fact")


def judged(number: int, pair: Pair, *, answered: int, noes: int) -> Judgement:
    ok, p = number < answered, 0.4 if number < noes else 0.9
    return Judgement(
        id=pair.id, question="q", status=Status.OK if ok else Status.UNPARSED, label=("yes" if p > 0.5 else "no") if ok else None,
        distribution={"yes": p, "no": 1 - p} if ok else None, model="J", k_effective=1, tokens=Tokens(prompt=1, cached=0, generated=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answered", "noes", "said"),
    [
        (len(FACT_PAIRS), 0, f"It says yes to all {len(FACT_PAIRS)} facts one by one: its accuracy"),
        (len(FACT_PAIRS), 1, f"It says yes to {len(FACT_PAIRS) - 1} of {len(FACT_PAIRS)} facts one by one: its accuracy"),
        (30, 0, "It says yes to all 30 of the facts one by one that it answered"),
        (30, 0, f"for facts one by one, 30 of {len(FACT_PAIRS)} ("),
    ],
)
def test_answers_are_counted_and_nearly_all_is_not_all(answered: int, noes: int, said: str) -> None:
    judgements = tuple(judged(n, pair, answered=answered, noes=noes) for n, pair in enumerate(FACT_PAIRS))
    ways = [Way(name, tuple(FACT_PAIRS), judgements, None) for name in (FACTS, LISTED)]
    assert said in agreement_result("J", ways, DRAWN, seed=0, resamples=100).answer
