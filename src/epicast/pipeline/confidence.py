"""How sure a mean over seeds is: the two-sided 95 % interval of Student's t.

Seeds are independent, so the mean of n runs is known up to t(n - 1) standard deviations over the root of n. One run
says nothing about that: then there is no interval. What is never negative in any run has no interval below zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Stat:
    n: int
    mean: float
    low: float | None  # of the interval; None for a single run
    high: float | None
    sd: float
    min: float
    q1: float
    median: float
    q3: float
    max: float


def from_moments(n: int, mean: float, sd: float, five: Sequence[float]) -> Stat:
    """`five` are minimum, quartiles and maximum; `sd` is that of a sample."""
    half = student.ppf((1 + CONFIDENCE) / 2, n - 1) * sd / math.sqrt(n) if n > 1 else None
    if half is None:
        return Stat(n, mean, None, None, 0.0, *five)
    low, high = mean - float(half), mean + float(half)
    return Stat(n, mean, low if five[0] < 0 else max(0.0, low), high, sd, *five)


def stat(values: Sequence[float]) -> Stat:
    assert len(values), "no values"
    array = np.asarray(values, np.float64)
    sd = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    five = [float(value) for value in np.quantile(array, [0.0, 0.25, 0.5, 0.75, 1.0])]
    return from_moments(len(array), float(array.mean()), sd, five)
