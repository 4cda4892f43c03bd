"""p values of single correlations, as papers print them (PerSE, tables 2 and 3): how likely so large a one is of unrelated numbers.

Items are taken for independent, which those of one reader, and those about one text, are not: such p values are too small. And a
correlation that differs from 0 need not be larger than a baseline's. They are printed for comparison with papers, and no sentence
rests on them; the intervals are of readers.
"""

from __future__ import annotations

from scipy import stats

from perse.evaluation.stats.correlation import FloatArray

TESTS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def p_values(gold: FloatArray, predicted: FloatArray) -> dict[str, float | None]:
    """Two-sided, of each coefficient of scipy, by its name; both (n,). None where it is undefined: n below 3, or a constant."""
    if len(gold) < 3 or (gold == gold[0]).all() or (predicted == predicted[0]).all():
        return dict.fromkeys(TESTS)
    found = {name: float(test(gold, predicted).pvalue) for name, test in TESTS.items()}
    return {name: p if p == p else None for name, p in found.items()}  # NaN is not equal to itself
