"""Rehearsal's published numbers: tables 1 and 2. Six scores in the order of `MEASURES`, and their average as printed."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """One row; `average` is the paper's, which is not always the mean of the six."""

    model: str
    method: str
    scores: tuple[float, ...]
    average: float


def _row(model: str, method: str, *numbers: float) -> Published:
    return Published(model, method, numbers[:6], numbers[6])


TABLE_1 = (
    _row("GPT-3.5-turbo", "persum", 82.19, 78.14, 74.00, 71.99, 73.93, 66.32, 74.43),
    _row("GPT-3.5-turbo", "ana-persum", 82.63, 77.91, 83.81, 80.85, 80.26, 72.75, 79.70),
    _row("GPT-3.5-turbo", "onlysum", 88.43, 82.66, 79.18, 75.83, 77.77, 69.27, 78.86),
    _row("GPT-3.5-turbo", "sum-perchan", 82.56, 77.94, 88.59, 86.31, 80.51, 75.41, 81.89),
    _row("GPT-3.5-turbo", "rehearsal", 91.87, 86.41, 88.92, 85.34, 89.78, 81.60, 87.32),
    _row("GPT-4o", "persum", 92.88, 88.73, 86.57, 82.45, 86.75, 76.66, 85.67),
    _row("GPT-4o", "ana-persum", 92.40, 87.81, 93.22, 89.49, 93.40, 84.67, 90.16),
    _row("GPT-4o", "onlysum", 91.64, 86.00, 87.50, 82.35, 89.60, 80.15, 84.87),
    _row("GPT-4o", "sum-perchan", 88.91, 84.52, 90.83, 88.10, 93.68, 88.22, 89.04),
    _row("GPT-4o", "rehearsal", 94.05, 88.45, 92.58, 87.19, 96.46, 87.82, 91.07),
    _row("GPT-4-turbo", "persum", 90.33, 85.98, 84.38, 80.99, 83.41, 73.99, 83.18),
    _row("GPT-4-turbo", "ana-persum", 92.03, 86.92, 92.15, 88.54, 92.74, 83.62, 89.34),
    _row("GPT-4-turbo", "onlysum", 88.53, 84.46, 81.62, 78.00, 78.82, 69.78, 80.20),
    _row("GPT-4-turbo", "sum-perchan", 87.27, 83.54, 84.62, 82.22, 82.89, 76.39, 82.82),
    _row("GPT-4-turbo", "rehearsal", 94.37, 88.19, 92.66, 86.51, 96.26, 86.82, 90.80),
    _row("CharacterGLM-4", "persum", 92.19, 87.10, 85.86, 82.48, 85.57, 76.13, 84.89),
    _row("CharacterGLM-4", "ana-persum", 89.44, 85.24, 90.93, 88.13, 91.59, 83.91, 88.21),
    _row("CharacterGLM-4", "onlysum", 93.52, 88.14, 88.96, 83.71, 91.42, 81.07, 87.80),
    _row("CharacterGLM-4", "sum-perchan", 90.36, 85.42, 88.43, 86.27, 89.54, 82.36, 87.07),
    _row("CharacterGLM-4", "rehearsal", 92.27, 87.67, 92.84, 89.35, 93.56, 85.98, 90.28),
    _row("Qwen-turbo", "persum", 88.53, 84.46, 81.62, 78.00, 78.82, 69.78, 80.20),
    _row("Qwen-turbo", "ana-persum", 92.65, 88.62, 92.35, 89.24, 94.13, 86.19, 90.53),
    _row("Qwen-turbo", "onlysum", 93.30, 87.96, 88.94, 85.06, 91.70, 81.72, 88.13),
    _row("Qwen-turbo", "sum-perchan", 92.58, 89.18, 91.59, 88.97, 92.87, 87.99, 90.53),
    _row("Qwen-turbo", "rehearsal", 93.48, 87.97, 93.79, 89.82, 94.98, 87.45, 91.25),
)
"""Qwen-turbo's PerSum and GPT-4-turbo's OnlySum have the same seven numbers in the paper."""

TABLE_2 = (
    _row("GPT-3.5", "sum-perchan", 82.56, 77.94, 88.59, 86.31, 80.51, 75.41, 81.89),
    _row("GPT-3.5", "role", 90.32, 85.54, 83.24, 79.53, 81.79, 72.66, 82.18),
    _row("GPT-3.5", "role-retriever", 92.98, 87.07, 88.64, 84.69, 86.74, 77.43, 86.26),
    _row("GPT-3.5", "role-supervisor", 92.05, 86.96, 84.94, 81.51, 83.98, 75.19, 84.11),
    _row("GPT-3.5", "role-icl", 92.64, 87.57, 86.80, 82.80, 86.16, 76.58, 85.43),
    _row("GPT-3.5", "rehearsal", 91.87, 86.41, 88.92, 85.34, 89.78, 81.60, 87.32),
    _row("GPT-4o", "sum-perchan", 88.91, 84.52, 90.83, 88.10, 93.68, 88.22, 89.04),
    _row("GPT-4o", "role", 93.70, 88.71, 91.12, 85.63, 93.73, 83.01, 89.32),
    _row("GPT-4o", "role-retriever", 94.34, 88.90, 92.64, 87.54, 95.95, 86.63, 91.00),
    _row("GPT-4o", "role-supervisor", 93.86, 91.07, 91.77, 87.40, 92.76, 86.93, 90.63),
    _row("GPT-4o", "role-icl", 93.60, 89.84, 91.33, 86.58, 92.33, 86.48, 90.03),
    _row("GPT-4o", "rehearsal", 94.07, 88.33, 92.25, 87.49, 96.46, 87.82, 91.07),
)
