"""The numbers of PerSE's tables 1 to 5. None: lost in our copy of the paper.

Lost in the copy's conversion: table 1, k = 4 and Interestingness of the training side; table 2, Kendall of matrix
factorization and of GPT-4 (the abstract's "15.8% higher" puts the latter near 0.253); table 5, Pearson of LLaMA-2-7b without
content. Table 2's row names were lost, too: they are put in the order of tables 3 and 4, which the text of section 5.1 bears
out. Table 4's last two columns ran together; they are told apart by the average, which is that of the five aspects.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One table: rows of one value per column."""

    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]

    @property
    def lost(self) -> int:
        """How many figures are None."""
        return sum(value is None for _, values in self.rows for value in values)


ASPECT_COLUMNS = ("Interestingness", "Adaptability", "Surprise", "Character Development", "Ending")

TABLE_1 = Published(
    1,
    "Statistics of Per-MPST and Per-DOC",
    ("k=1", "k=2", "k=3", "k=4", "k=5", *ASPECT_COLUMNS),
    (
        ("Train, # reviewers", (1412, 1394, 1385, None, 1336, None, 171, 156, 160, 155)),
        ("Train, # examples", (13254, 13940, 13794, None, 12041, None, 1856, 1722, 1785, 1574)),
        ("Train, avg. length", (868.9, 1235.2, 1600.3, None, 2123.3, None, 2413.7, 2411.7, 2409.8, 2409.6)),
        ("Valid, # reviewers", (92, 92, 92, 92, 92, 18, 18, 15, 18, 15)),
        ("Valid, # examples", (915, 920, 920, 906, 833, 234, 224, 161, 162, 173)),
        ("Valid, avg. length", (857.9, 1237.1, 1597.2, 1956.1, 2108.4, 2402.9, 2399.2, 2408.4, 2421.4, 2404.3)),
    ),
)

TABLE_2 = Published(
    2,
    "Correlations with human ratings on Per-MPST, k = 3",
    ("Pearson", "Spearman", "Kendall"),
    (
        ("Simple baseline (average)", (0.308, 0.313, 0.269)),
        ("Matrix factorization", (0.301, 0.302, None)),
        ("LLaMA-2-7b", (0.146, 0.117, 0.094)),
        ("LLaMA-2-13b", (0.172, 0.182, 0.147)),
        ("LLaMA-2-70b", (0.214, 0.232, 0.181)),
        ("GPT-4", (0.315, 0.312, None)),
        ("PerSE-7b", (0.307, 0.329, 0.263)),
        ("PerSE-13b", (0.345, 0.368, 0.293)),
    ),
)

TABLE_3 = Published(
    3,
    "Generated against human-written reviews on Per-MPST (ROUGE-1)",
    ("BLEU", "ROUGE", "BERTScore", "BARTScore"),
    (
        ("LLaMA-2-7b", (2.213, 0.253, 0.829, -9.049)),
        ("LLaMA-2-13b", (2.847, 0.262, 0.833, -9.228)),
        ("LLaMA-2-70b", (3.014, 0.256, 0.832, -8.538)),
        ("GPT-4", (3.040, 0.252, 0.831, -6.853)),
        ("PerSE-7b", (3.988, 0.292, 0.834, -6.741)),
        ("PerSE-13b", (4.108, 0.294, 0.834, -6.577)),
    ),
)

TABLE_4 = Published(
    4,
    "Accuracy on Per-DOC, k = 1",
    (*ASPECT_COLUMNS, "Average"),
    (
        ("Simple baseline (copy)", (0.466, 0.478, 0.460, 0.469, 0.515, 0.477)),
        ("LLaMA-2-7b", (0.466, 0.491, 0.453, 0.481, 0.503, 0.479)),
        ("LLaMA-2-13b", (0.422, 0.451, 0.477, 0.481, 0.517, 0.470)),
        ("LLaMA-2-70b", (0.517, 0.507, 0.431, 0.505, 0.545, 0.501)),
        ("GPT-4", (0.502, 0.496, 0.596, 0.506, 0.543, 0.529)),
        ("PerSE-7b", (0.572, 0.565, 0.619, 0.565, 0.560, 0.576)),
        ("PerSE-13b", (0.621, 0.570, 0.616, 0.607, 0.597, 0.602)),
    ),
)

TABLE_5 = Published(
    5,
    "With and without review content on Per-MPST, k = 3, mean of three replicates",
    ("Pearson", "Spearman", "Kendall"),
    (
        ("LLaMA-2-7b", (0.123, 0.130, 0.104)),
        ("LLaMA-2-7b, w/o content", (None, -0.002, -0.005)),
        ("LLaMA-2-13b", (0.163, 0.191, 0.154)),
        ("LLaMA-2-13b, w/o content", (-0.039, -0.035, -0.028)),
        ("PerSE-7b", (0.322, 0.340, 0.272)),
        ("PerSE-7b, w/o content", (-0.088, -0.064, -0.057)),
        ("PerSE-13b", (0.381, 0.378, 0.301)),
        ("PerSE-13b, w/o content", (-0.088, -0.069, -0.057)),
    ),
)
