"""What a stacking needs of the training side: user+item bias with its penalties, by text instead of item."""

from __future__ import annotations

from collections.abc import Sequence

from perse.errors import BadInput
from perse.evaluation.baselines.bias import fit_bias_model
from perse.identity import reader_key, text_key
from perse.records import PointwiseExample
from perse.stacking.sources import Known


def known_of(train: Sequence[PointwiseExample]) -> Known:
    """Of the scores of training readers, each once; penalties are chosen as for the baseline.

    Raises:
        BadInput: the training side holds no score.
    """
    model = fit_bias_model([by_text(example) for example in train])
    texts = {key: (float(model.total[row]), int(model.number[row])) for key, row in model.row_of.items()}
    if not texts:
        raise BadInput("the training side holds no score of any text; build the data set with more readers")
    return Known(
        mean=model.mean,
        item_penalty=model.item_penalty,
        reader_penalty=model.reader_penalty,
        texts=texts,
        readers=tuple(sorted({reader_key(example.reviewer_id) for example in train})),
    )


def by_text(example: PointwiseExample) -> PointwiseExample:
    """The same with texts in the place of items: where a stacking is applied, a text is known by itself alone."""
    profile = tuple(past.model_copy(update={"item_id": text_key(past.text)}) for past in example.profile)
    return example.model_copy(update={"item_id": text_key(example.query), "profile": profile})
