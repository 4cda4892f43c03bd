"""Near-duplicates: the fast ways find what comparing all pairs finds, and nothing else."""

import random
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perse.data.works import text_groups, works
from perse.identity import normalised, text_key
from perse.records import Review
from perse.records.near import BANDS, ROWS, hashed, near_across, near_duplicate, near_groups, prints, shingles

WORDS = [f"w{number}" for number in range(400)]


def text_of(seed: int, words: int = 60) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def changed(text: str, *places: int) -> str:
    words = text.split()
    for place in places:
        words[place] = "changed"
    return " ".join(words)


def all_pairs(texts: list[str]) -> list[int]:
    """The slow twin of `near_groups`: every text against every other."""
    group = list(range(len(texts)))
    for one, two in combinations(range(len(texts)), 2):
        if near_duplicate(texts[one], texts[two]):
            group = [group[one] if other == group[two] else other for other in group]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(one, len(numbers)) for one in group]


def family(seed: int, size: int) -> list[str]:
    """Texts of 8 to 120 words, many made of another by changing, dropping or adding a few words."""
    chance = random.Random(seed)
    texts = [text_of(seed, 60)]
    while len(texts) < size:
        words = chance.choice(texts).split() if chance.random() < 0.7 else chance.choices(WORDS, k=chance.randint(3, 120))
        for _ in range(chance.randint(0, 3)):
            place = chance.randrange(len(words))
            words[place : place + chance.randint(0, 1)] = chance.choices(WORDS, k=chance.randint(0, 2))
            words = words or ["w"]
        texts.append(" ".join(words))
    return texts


def test_one_word_of_sixty_is_near_and_one_of_thirty_is_not() -> None:
    # 60 words have 56 shingles; a word in the middle is in 5 of them: 51 shared of 56 + 5, 0.836. 30 words: 21 of 31, 0.677.
    assert near_duplicate(text_of(1), changed(text_of(1), 30))
    assert not near_duplicate(text_of(1, 30), changed(text_of(1, 30), 15))


def test_exactly_four_fifths_is_near() -> None:
    # A text of n words and its first m: (m - 4) / (n - 4) of the shingles are shared. 20 of 25 is 0.8, 19 of 25 is less.
    words = [f"w{number}" for number in range(29)]
    assert near_duplicate(" ".join(words), " ".join(words[:24]))
    assert not near_duplicate(" ".join(words), " ".join(words[:23]))
    # The shared shingles occur twice, so the 5 others are the rarest of the longer text, and its first 6 must be looked up.
    assert near_across([" ".join(words)], [" ".join(words[:24]), " ".join(words[:23])]).keys() == {" ".join(words[:24])}
    assert near_groups([" ".join(words), " ".join(words[:24]), " ".join(words[:23])]) == [0, 0, 0]  # 19 of 20: through another


def test_texts_of_fewer_than_eight_words_are_compared_exactly() -> None:
    assert near_duplicate("A short plot of seven words here", " a SHORT plot of seven\nwords here")
    assert not near_duplicate("one two three four five six seven", "one two three four five six seven eight")
    assert near_groups(["", " ", "a b", "A  B", "a c"]) == [0, 0, 1, 1, 2]
    assert near_groups([]) == []


def test_case_spacing_and_unicode_form_make_no_difference() -> None:
    text = "Caf\u00e9 " + text_of(2)
    other = "cafe\u0301\n" + changed(text_of(2), 20).upper()
    assert near_duplicate(text, other) and near_groups([text, "x", other]) == [0, 1, 0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 40))
def test_groups_are_those_of_comparing_all_pairs_in_any_order(seed: int, size: int) -> None:
    texts = family(seed, size)
    groups = near_groups(texts)
    assert groups == all_pairs(texts)
    order = random.Random(seed).sample(range(size), size)
    moved = near_groups([texts[place] for place in order])
    for one, two in combinations(range(size), 2):
        assert (moved[one] == moved[two]) == (groups[order[one]] == groups[order[two]])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 40))
def test_the_exact_search_across_two_sides_is_that_of_all_pairs(seed: int, size: int) -> None:
    texts = family(seed, size)
    known, asked = texts[: size // 2], texts[size // 2 :]
    expected = {one for one in asked if any(near_duplicate(one, other) for other in known)}
    found = near_across(known, asked)
    assert found.keys() == expected
    assert all(other in known and near_duplicate(one, other) for one, other in found.items())


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(alphabet="ab \n\u00e9\u4e2d\ud800\x00", max_size=60), max_size=6))
@example(texts=["a a a a a a a a a a", "a b a b a b a b", ""])
def test_hashes_are_equal_exactly_where_shingles_are(texts: list[str]) -> None:
    plain = [normalised(text) for text in texts]
    of: dict[int, set[int]] = {place: set() for place in range(len(plain))}
    for count, hashes, owners in hashed(plain):
        assert count == len(plain)
        for one, owner in zip(hashes.tolist(), owners.tolist(), strict=True):
            of[owner].add(one)
    for one in of:
        assert len(of[one]) == len(shingles(plain[one]))
        for two in of:
            assert len(of[one] & of[two]) == len(shingles(plain[one]) & shingles(plain[two]))


def test_every_bit_of_a_hash_is_on_in_half_of_them() -> None:
    """What picks buckets, prints and counters: of 20,000 hashes a bit is on in 10,000 +- 71, here within 5 of these."""
    [(_, hashes, _)] = hashed([" ".join(f"w{n}" for n in range(20_004))])
    assert len(hashes) == 20_000
    on = [int((hashes >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)]
    assert min(on) > 10_000 - 355 and max(on) < 10_000 + 355


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_prints_never_rule_out_a_near_duplicate(seed: int) -> None:
    texts = [text for text in family(seed, 20) if len(text.split()) >= 8]
    pictures = prints(texts)
    for one, two in combinations(range(len(texts)), 2):
        if near_duplicate(texts[one], texts[two]):
            assert pictures.may_be_near([one], [two])[0]


def test_pairs_at_the_threshold_are_found_as_often_as_the_formula_says() -> None:
    # (1 - 0.8^4)^32 = 0.5904^32 = 4.7e-8 missed: none among 500. Shingles of a text of 29 words and its first 24: 20 of 25.
    assert (BANDS, ROWS) == (32, 4) and 4.6e-8 < (1 - 0.8**ROWS) ** BANDS < 4.9e-8
    texts = [[f"t{number}w{place}" for place in range(29)] for number in range(500)]
    groups = near_groups([" ".join(words[:size]) for words in texts for size in (29, 24)])
    assert groups == [number for number in range(500) for _ in range(2)]


def test_a_chain_is_followed_within_a_bucket() -> None:
    # Words 0-28, 0-27 and 5-28 of 29: the first is near both others (24 and 20 of 25), those share 19 of 25 and are not near.
    texts = [[f"t{number}w{place}" for place in range(29)] for number in range(100)]
    groups = near_groups([" ".join(part) for words in texts for part in (words[:28], words, words[5:])])
    assert groups == [number for number in range(100) for _ in range(3)]


def test_a_text_of_many_copies_and_a_sentence_of_all_texts_cost_little() -> None:
    boiler = " ".join(f"b{place}" for place in range(60))
    texts = [f"{text_of(number, 60)} {boiler}" for number in range(1500)]
    assert len(set(near_groups(texts))) == 1500
    assert near_across(texts[:750], texts[750:]) == {}
    copies = [f"{boiler} {text_of(0, 60)} copy{number}" for number in range(1500)]
    assert set(near_groups(copies)) == {0}
    assert len(near_across(copies[:750], copies[750:])) == 750


def test_groups_are_the_same_in_every_process() -> None:
    program = (
        "import random; from perse.data.works import text_groups; r = random.Random(5);"
        "t = [' '.join(r.choices('abcdefgh', k=80)) for _ in range(50)]; t += [x[:70] + ' z' + x[70:] for x in t];"
        "print(*text_groups(t).values())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout and len(set(runs[0].stdout.split())) == 50


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from perse.errors import BadInput

    monkeypatch.setitem(sys.modules, "rensa", None)
    with pytest.raises(BadInput, match="pip install "):
        near_groups([text_of(1)])


def test_the_key_of_a_text_without_near_duplicates_is_its_own() -> None:
    text, alone = text_of(3), text_of(4)
    both = text_groups([text, changed(text, 30), alone, text])
    assert both[text] == both[changed(text, 30)] == min(text_key(text), text_key(changed(text, 30)))
    assert both[alone] == text_key(alone) and len(both) == 3
    # One more near-duplicate, whatever its key, leaves the others' key alone or makes it smaller for all.
    more = text_groups([changed(text, 31), *both])
    assert more[text] == more[changed(text, 31)] <= both[text] and more[alone] == text_key(alone)


def review(item: str, text: str) -> Review:
    return Review(review_id=f"p-{item}", reviewer_id="p", item_id=item, text=text, review="r", score=5, original_score=5)


def test_items_with_near_duplicate_texts_are_one_work_also_through_others() -> None:
    text = text_of(5)
    mine = [review("1", text), review("2", changed(text, 30)), review("2b", changed(text, 30, 31, 32)), review("3", text_of(6))]
    # 1 and 2b differ in 3 words in a row: 7 of 56 shingles each, 49 of 63 shared, 0.78; through 2 they are one work.
    assert not near_duplicate(mine[0].text, mine[2].text)
    about = works(mine)
    assert about["p-1"] == about["p-2"] == about["p-2b"] == "item:1" and about["p-3"] == "item:3"
    assert about == works(list(reversed(mine)))
    assert len(set(works(mine, near=False).values())) == 4


@pytest.mark.parametrize(
    "unseen",
    ["\u00ad", "\u200b", "\u200d", "\ufeff", "\u2060", "\ufe0f", "\u202e", "\ufff9", "\u2800", "\U000e0041"],
)
def test_what_nobody_sees_makes_no_other_text(unseen: str) -> None:
    text = text_of(0)
    hidden = "".join(letter + unseen for letter in text)
    assert (
        text_key(hidden) == text_key(text) and near_duplicate(hidden, text) and near_across([text], [hidden]) == {hidden: text}
    )
    assert normalised("na\u00efve \U0001f9d1\u200d\U0001f680") != normalised("naive")


@pytest.mark.parametrize("control", ["\x00", "\x01", "\x7f", "\x85", "\x9f"])
def test_a_control_character_is_the_blank_that_it_is_shown_as(control: str) -> None:
    text = text_of(0)
    assert text_key(text.replace(" ", control)) == text_key(text) == text_key(text + control)


def test_hashes_are_the_same_in_however_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [normalised(text) for text in family(5, 30)]
    [(count, whole, owners)] = hashed(texts)
    monkeypatch.setattr("perse.records.near._BATCH", 500)
    parts = list(hashed(texts))
    assert len(parts) > 3 and sum(part[0] for part in parts) == count == 30
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), whole)
    before = np.cumsum([0, *(part[0] for part in parts[:-1])])
    np.testing.assert_array_equal(np.concatenate([part[2] + at for part, at in zip(parts, before, strict=True)]), owners)
    assert near_groups(texts) == all_pairs(texts)
    assert list(hashed([])) == []
