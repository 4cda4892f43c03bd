"""Real readers as roles: who is chosen, what they are shown, and what differs between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from vote_builders import Poll, Said, document, texts_of

from perse.drpe.documents import Candidate, Document
from perse.drpe.votes.ballots import Ballot, Voting, make_ballots
from perse.drpe.votes.readers import Reader, choose_readers, taste
from perse.drpe.votes.readership import Readership, Shares, readership
from perse.drpe.votes.run_folder import read_run
from perse.drpe.votes.telling import _ends, _of_readers, vote_result
from perse.errors import BadInput
from perse.judgement import Judgement, Status, Tokens
from perse.records import Choice, Pair, PairwiseExample, PointwiseExample, ProfileComparison, ProfileReview, example_lines

PLACES = {"ships": (1.0, 0.0), "trains": (0.0, 1.0)}


def embed(texts: list[str]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([PLACES[text] for text in texts])


def past(text: str, score: int) -> ProfileReview:
    return ProfileReview(text=text, review=f"{score} for {text}", score=score)


def reader(name: str, *profile: ProfileReview, stands_for: int = 1) -> Reader:
    return Reader(name, profile or (past("ships", 9),), stands_for)


def data_of(folder: Path, **profiles: tuple[ProfileReview, ...]) -> Path:
    path = folder / "examples.jsonl"
    examples = [
        PointwiseExample(id=f"{name}-{n}", reviewer_id=name, item_id=f"i{n}", profile=profile, query=f"text {n}")
        for name, profile in profiles.items()
        for n in (1, 2)
    ]
    path.write_text("".join(example_lines(examples)), "utf-8")
    return path


def test_a_taste_points_to_what_was_liked_and_away_from_what_was_not() -> None:
    # weights 3.5 and -4.5: (3.5, -4.5) of length sqrt(32.5)
    assert taste([past("ships", 9), past("trains", 1)], embed) == pytest.approx(np.array([3.5, -4.5]) / np.sqrt(32.5))


def test_of_readers_of_one_taste_the_nearest_to_their_middle_votes_for_all(tmp_path: Path) -> None:
    data = data_of(
        tmp_path,
        anna=(past("ships", 9),),
        bert=(past("ships", 10), past("ships", 8)),
        cora=(past("trains", 10),),
        dora=(past("ships", 10), past("trains", 6)),
    )
    found = choose_readers(data, 2, embed)
    assert [(one.id, one.stands_for) for one in found] == [("anna", 3), ("cora", 1)]
    assert sum(one.stands_for for one in found) == 4


def test_more_readers_than_there_are_is_all_of_them(tmp_path: Path) -> None:
    found = choose_readers(data_of(tmp_path, anna=(past("ships", 9),), cora=(past("trains", 1),)), 5, embed)
    assert [(one.id, one.stands_for) for one in found] == [("anna", 1), ("cora", 1)]


def test_readers_without_reviews_do_not_vote(tmp_path: Path) -> None:
    assert [one.id for one in choose_readers(data_of(tmp_path, anna=(past("ships", 9),), bert=()), 3, embed)] == ["anna"]
    with pytest.raises(BadInput, match="no reader of .* has a profile"):
        choose_readers(data_of(tmp_path, bert=()), 3, embed)


def test_each_reader_votes_by_their_own_reviews_and_beside_invented_roles(tmp_path: Path) -> None:
    def say(message: str, seed: int) -> Said:
        side = "A" if ("9 for ships" in message) == ("It sails." in texts_of_reader(message)[0]) else "B"
        return f"Reason: because.\nVote: Text {side}"

    poll = Poll(say)
    readers = (reader("anna"), reader("bert", past("trains", 2), stands_for=3))
    run = read_run(poll.vote(tmp_path / "run", [document(candidates=("It sails.",))], (), readers=readers))
    assert len(poll.asked) == 2 * 2
    assert (
        sum("9 for ships" in message for message in poll.asked) == sum("2 for trains" in message for message in poll.asked) == 2
    )
    found = readership(run.ballots, run.answers, tuple(run.readers))
    assert found.chances == {("d1", "M1"): {"anna": 1.0, "bert": 0.0}} and found.won(("d1", "M1"), run.readers) == 0.25
    [table] = [one for one in vote_result(run).tables if one.title == "Real readers"]
    # This judge tells no probabilities, so that there is no P(candidate).
    assert list(table.rows) == [("anna", "1 of 4", None, "100%"), ("bert", "3 of 4", None, "0%")]


def texts_of_reader(message: str) -> tuple[str, str]:
    return texts_of(message.replace("\n[Answer] Both", "\nWhich"))


def test_what_a_reader_has_said_of_a_text_is_not_shown_when_it_is_voted_on() -> None:
    one = document(candidates=("It sails.", "It sank."))
    knows = reader("anna", past("It  SAILS.", 9), past("ships", 4))
    only = reader("bert", past("It sails.", 9))
    made = make_ballots([one], {"d1": ()}, Voting(orders=1), (knows, only))
    shown = {(example.reviewer_id, example.query.text_b): len(example.profile) for example in made.examples["single"]}
    assert shown == {("anna", "It sails."): 1, ("anna", "It sank."): 2, ("bert", "It sank."): 1}
    assert not any(example.gives_away(lambda a, b: a == b) for example in made.examples["single"])


SHIP, TRAIN = "ships", "trains"


def compared(choice: Choice, **more: Choice) -> ProfileComparison:
    return ProfileComparison(text_a=SHIP, text_b=TRAIN, preference={"Surprise": choice, **more})


def pairs_of(folder: Path, **profiles: tuple[ProfileComparison, ...]) -> Path:
    path = folder / "pairs.jsonl"
    examples = [
        PairwiseExample(
            id=f"{name}-{aspect}", reviewer_id=name, aspect=aspect, profile=profile, query=Pair(text_a="one", text_b="other")
        )
        for name, profile in profiles.items()
        for aspect in ("Surprise", "Ending")
    ]
    path.write_text("".join(example_lines(examples)), "utf-8")
    return path


def test_a_taste_of_comparisons_points_from_what_was_not_chosen_to_what_was() -> None:
    found = taste([compared("A"), compared("A"), compared("B")], embed, aspect="Surprise")
    assert found == pytest.approx(np.array([1, -1]) / np.sqrt(2))
    assert not taste([compared("A")], embed_any, aspect="Ending").any()


def embed_any(texts: list[str]) -> np.ndarray:  # type: ignore[type-arg]
    return np.ones((len(texts), 2))


def test_readers_of_pairs_vote_on_an_aspect_that_the_data_set_has(tmp_path: Path) -> None:
    data = pairs_of(tmp_path, anna=(compared("A"),), bert=(compared("A"), compared("A")), cora=(compared("B"),))
    found = choose_readers(data, 2, embed, aspect="Surprise")
    assert [(one.id, one.stands_for, one.aspect) for one in found] == [("anna", 2, "Surprise"), ("cora", 1, "Surprise")]
    assert found[0].role.description == "known by 1 comparison, on Surprise"
    assert {one.aspect for one in choose_readers(data, 9, embed)} == {"Ending"}  # the first by name
    with pytest.raises(BadInput, match="has no aspect 'Plot'; there are Ending, Surprise"):
        choose_readers(data, 2, embed, aspect="Plot")
    with pytest.raises(BadInput, match="--aspect is of data sets of pairs"):
        choose_readers(data_of(tmp_path, anna=(past("ships", 9),)), 2, embed, aspect="Surprise")


def test_readers_of_pairs_are_asked_as_a_judge_of_pairs_in_each_order_of_its_own(tmp_path: Path) -> None:
    def say(message: str, seed: int) -> Said:
        assert "Surprise" in message
        tail = message[message.rindex("It sails.") :]
        first = "sails again." in tail  # the candidate stands before the reference
        fan = message.index("ships") < message.index("trains")
        return f"Plot {'A' if first == fan else 'B'}"

    poll = Poll(say)
    other = ProfileComparison(text_a=TRAIN, text_b=SHIP, preference={"Surprise": "A"})
    readers = (Reader("anna", (compared("A"),), 1, "Surprise"), Reader("bert", (other,), 2, "Surprise"))
    story = document(candidates=("It sails.",), article=None)
    run = read_run(poll.vote(tmp_path / "run", [story], (), readers=readers, wordings=(0, 1)))
    assert len(poll.asked) == 2 * 2  # two readers, two orders; another wording of the vote asks them nothing new
    assert {answer.question for answer in run.answers["single"].values()} == {"pairwise_once"}
    found = readership(run.ballots, run.answers, tuple(run.readers))
    assert found.chances == {("d1", "M1"): {"anna": 1.0, "bert": 0.0}}


def test_a_comparison_with_one_of_the_two_texts_is_not_shown() -> None:
    seen = ProfileComparison(text_a="It SAILS.", text_b=TRAIN, preference={"Surprise": "A"})
    made = make_ballots(
        [document(candidates=("It sails.", "It sank."))], {"d1": ()}, Voting(orders=1), (Reader("anna", (seen, compared("B")), 1, "Surprise"),)
    )  # fmt: skip
    shown = {example.query.text_b: len(example.profile) for example in made.examples["single"]}
    assert shown == {"It sails.": 1, "It sank.": 2}
    assert all(example.query.premise == "Ferry 1 sails again, says the harbour." for example in made.examples["single"])


def votes(*tables: dict[str, dict[str, float]]) -> tuple[list[Ballot], dict[str, Judgement]]:
    """text -> reader -> P(candidate), in the order of the second text, and perhaps of the first."""
    ballots, answers = [], {}
    for side, table in zip("BA", tables, strict=False):
        for text, of_one in table.items():
            for name, chance in of_one.items():
                key, first = f"{text}/{name}" + ("" if side == "B" else "/first"), side == "A"
                ballots.append(
                    Ballot(
                        document="d", system=text, reference=1, candidate="A" if first else "B", prompting="single",
                        role=reader(name).role, judgement=key,
                    )
                )  # fmt: skip
                shares = {"A": chance, "B": 1 - chance} if first else {"A": 1 - chance, "B": chance}
                answers[key] = Judgement(
                    id=key, question="vote_reader", status=Status.OK, label=max(shares, key=lambda one: shares[one]), distribution=shares,
                    mass=1.0, k_effective=1, tokens=Tokens(prompt=1, cached=0, generated=0), model="m",
                )  # fmt: skip
    return ballots, answers


@pytest.mark.parametrize(
    ("table", "shares"),
    [
        ({"t": {"a": 0.2, "b": 0.2}, "u": {"a": 0.8, "b": 0.8}}, (1.0, 0.0, 0.0)),
        ({"t": {"a": 0.2, "b": 0.8}, "u": {"a": 0.2, "b": 0.8}}, (0.0, 1.0, 0.0)),
        ({"t": {"a": 0.2, "b": 0.8}, "u": {"a": 0.8, "b": 0.2}}, (0.0, 0.0, 1.0)),
        # rows .2, .75 and columns .3, .65 around .475; residuals of .075: mean squares .3025, .1225, .0225, so .14, .05 and .0225
        ({"t": {"a": 0.1, "b": 0.3}, "u": {"a": 0.5, "b": 1.0}}, (0.14 / 0.2125, 0.05 / 0.2125, 0.0225 / 0.2125)),
    ],
)
def test_what_differs_lies_between_texts_between_readers_or_in_taste(
    table: dict[str, dict[str, float]], shares: tuple[float, float, float]
) -> None:
    ballots, answers = votes(table)
    whole_table = readership(ballots, {"single": answers}, ("a", "b"))
    assert whole_table.spread == pytest.approx(np.std([chance for of_one in table.values() for chance in of_one.values()]))
    found = whole_table.shares
    assert found is not None and (found.texts, found.readers, found.taste) == pytest.approx(shares) and found.chance is None


def shares_of(*orders: np.ndarray) -> Shares:  # type: ignore[type-arg]
    """Of tables of texts by readers, the candidate second, and first."""
    tables = [{f"t{t}": {f"r{r}": float(p) for r, p in enumerate(row)} for t, row in enumerate(of)} for of in orders]
    ballots, answers = votes(*tables)
    found = readership(ballots, {"single": answers}, [f"r{r}" for r in range(orders[0].shape[1])]).shares
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "readers", "taste"), [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)], ids=["nothing", "texts", "readers", "taste", "all"]
)  # fmt: skip
def test_chance_passes_neither_for_taste_nor_for_readers_who_agree(texts: int, readers: int, taste: int) -> None:
    """Worlds of 40 texts and 5 readers, every part with a standard deviation of .05 or none, chance in each order, and a lean to the first place, of a
    reader and at a text."""
    parts = []
    for seed in range(60):
        draw = np.random.default_rng(seed).normal
        truth = 0.05 * (texts * draw(size=(40, 1)) + readers * draw(size=(1, 5)) + taste * draw(size=(40, 5)))
        lean = 0.1 + 0.05 * draw(size=(1, 5)) + 0.05 * draw(size=(40, 1))
        second, first = (0.5 + truth + sign * lean + 0.05 * np.sqrt(2) * draw(size=(40, 5)) for sign in (-1, 1))
        found = shares_of(second.clip(0.01, 0.99), first.clip(0.01, 0.99))
        assert found.chance is not None and found.texts + found.readers + found.taste + found.chance == pytest.approx(1)
        parts.append((found.texts, found.readers, found.taste, found.chance))
    expected = np.array([texts, readers, taste, 1]) / (texts + readers + taste + 1)
    assert np.mean(parts, axis=0) == pytest.approx(expected, abs=0.1)


def of_twenty_texts(taste: float, *, seed: int) -> Readership:
    """Five readers with so much taste, beside chance of a standard deviation of .05 in a cell."""
    draw = np.random.default_rng(seed).normal
    truth = 0.5 + 0.05 * draw(size=(20, 1)) + taste * draw(size=(20, 5))
    first, second = (truth + 0.05 * np.sqrt(2) * draw(size=(20, 5)) for _ in range(2))
    names = tuple(f"r{r}" for r in range(5))
    cells = {
        (f"d{t}", "M1"): [dict(zip(names, row.tolist(), strict=True)) for row in (one, other)]
        for t, (one, other) in enumerate(zip((first + second) / 2, first - second, strict=True))
    }
    return Readership(
        names,
        {text: one for text, (one, _) in cells.items()},
        {text: gap for text, (_, gap) in cells.items()},
        {},
        incomplete=0,
    )


def test_taste_is_said_to_be_shown_only_where_both_orders_have_it() -> None:
    none = [of_twenty_texts(0.0, seed=seed) for seed in range(40)]
    assert sum(bool(one.taste_shown) for one in none) <= 3
    assert max(one.shares.taste for one in none if one.shares) > 0.1, "by the share alone some would be said to have taste"
    named = next(one for one in none if one.shares and one.shares.taste > 0.1 and not one.taste_shown)
    assert "who votes for which text (not shown to be more than chance), and" in _of_readers(named)
    assert "who votes for which text, and" in _of_readers(of_twenty_texts(0.1, seed=0))


def test_readers_who_agree_and_lean_unequally_are_not_said_to_have_tastes_alone() -> None:
    draw = np.random.default_rng(3).normal
    lean, texts = np.array([[0.0, 0.0, 0.0, 3.0, 3.0]]), draw(size=(20, 1))
    first, second = (1 / (1 + np.exp(-(texts + sign * lean + 0.1 * draw(size=(20, 5))))) for sign in (1, -1))
    names = tuple(f"r{r}" for r in range(5))
    chances, orders = (
        {(f"d{t}", "M1"): dict(zip(names, row.tolist(), strict=True)) for t, row in enumerate(table)}
        for table in ((first + second) / 2, first - second)
    )
    found = Readership(names, chances, orders, {}, incomplete=0)
    assert found.taste_shown
    low, high = sorted(found.lean(name) or 0.0 for name in names)[:: len(names) - 1]
    said = _of_readers(found)
    assert "% who votes for which text, and" in said and "Who votes for which text may come of taste, or of readers" in said
    assert said.endswith(f"a vote for it is higher by {low:+.2f} to {high:+.2f}, by reader.") and abs(low) < 0.05 and high > 0.7
    even = replace(found, orders={text: dict.fromkeys(names, 0.004 * (-1) ** n) for n, text in enumerate(orders)})
    assert _of_readers(even).endswith("where a text stands first, a vote for it is higher by +0.00 for every reader.")


def test_readers_who_all_vote_for_one_place_are_not_said_to_have_voted_on_too_few_texts() -> None:
    first, second = ({f"t{n}": {"a": p, "b": p} for n in range(12)} for p in (0.0, 1.0))
    ballots, answers = votes(first, second)
    said = _of_readers(readership(ballots, {"single": answers}, ("a", "b")))
    assert (
        said.startswith("All 2 real readers vote for all 12 texts alike (0.50, the mean over orders)")
        and "too little" not in said
    )


def test_votes_of_a_judge_that_tells_no_probabilities_are_not_called_probabilities() -> None:
    table = {f"t{n}": {"a": 0.2 + 0.6 * (n % 2), "b": 0.8} for n in range(12)}
    ballots, answers = votes(table, table)
    in_words = {key: one.model_copy(update={"distribution": None}) for key, one in answers.items()}
    for given, probable in ((answers, True), (in_words, False)):
        found = readership(ballots, {"single": given}, ("a", "b"))
        assert found.probable is probable and ("variance of P(candidate)" in _of_readers(found)) is probable
    assert "variance of votes for the candidate over 12 texts" in _of_readers(found)


def test_a_taste_that_is_shown_has_a_share_wherever_a_text_draws_all_readers_to_one_place() -> None:
    draw = np.random.default_rng(2).normal
    place, taste = 0.2 * draw(size=(20, 1)), 0.08 * draw(size=(20, 5))
    both = [0.5 + taste + sign * place + 0.02 * draw(size=(20, 5)) for sign in (1, -1)]
    names = tuple(f"r{r}" for r in range(5))
    means, gaps = (both[0] + both[1]) / 2, both[0] - both[1]
    chances, orders = (
        {(f"d{t}", "M1"): dict(zip(names, row.tolist(), strict=True)) for t, row in enumerate(table)} for table in (means, gaps)
    )
    found = Readership(names, chances, orders, {}, incomplete=0)
    assert found.taste_shown and found.shares is not None and found.shares.taste > 0.9


def test_in_one_order_nothing_is_said_of_taste_being_shown() -> None:
    found = of_twenty_texts(0.1, seed=0)
    once = replace(found, orders={text: dict.fromkeys(of_one) for text, of_one in found.orders.items()})
    assert once.taste_shown is None and "who votes for which text and chance, which one order cannot tell apart" in _of_readers(
        once
    )


def test_a_reader_who_votes_for_both_in_two_orders_is_half_won_and_counts_for_those_he_stands_for() -> None:
    ballots, answers = votes({"t": {"a": 0.9, "b": 0.8}}, {"t": {"a": 0.3, "b": 0.7}})
    found = readership(ballots, {"single": answers}, ("a", "b"))
    assert found.votes == {("d", "t"): {"a": 0.5, "b": 1.0}}
    assert found.won(("d", "t"), {"a": 1, "b": 1}) == 0.75 and found.won(("d", "t"), {"a": 3, "b": 1}) == (3 * 0.5 + 1) / 4


def test_whom_a_text_wins_least_and_most_is_one_reader_only_where_no_other_votes_as_they_do() -> None:
    assert _ends({"a": 0.2, "b": 0.8, "c": 0.8}) == ("0.200", "a", "0.800", "2 of 3 readers")
    assert _ends({"a": 0.5, "b": 0.5}) == ("0.500", "2 of 2 readers", "0.500", "2 of 2 readers")


def test_a_text_without_all_votes_is_counted_and_left_out() -> None:
    ballots, answers = votes({"t": {"a": 0.2, "b": 0.8}, "u": {"a": 0.8, "b": 0.2}})
    del answers["u/b"]
    found = readership(ballots, {"single": answers}, ("a", "b"))
    assert list(found.chances) == [("d", "t")] and found.incomplete == 1 and found.shares is None


@pytest.mark.parametrize(
    ("documents", "readers", "named"),
    [
        ([document(1).model_copy(update={"id": "d\x1b"})], [], "document"),
        ([document(1).model_copy(update={"candidates": (Candidate.model_construct(system="M\x07", text="It sails."),)})], [], "system"),
        ([document(1)], [Reader("Ann\x1b", (ProfileReview(text="A story.", review="Fine.", score=9),), 1)], "reader"),
    ],
)  # fmt: skip
def test_a_vote_with_a_control_character_in_a_name_is_one_sentence(
    tmp_path: Path, documents: list[Document], readers: list[Reader], named: str
) -> None:
    with pytest.raises(BadInput, match=f'^{named} ".*": found the control character .*; give it another name$'):
        Poll().vote(tmp_path / "votes", documents, readers=readers)
    assert not (tmp_path / "votes").exists()
