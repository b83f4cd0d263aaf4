"""Two ways of playing the same thing, compared by numbers that sum up their runs.

Within a run the processes share the luck of the first hops, so they are no independent sample; runs are. Two samples of
such numbers agree if a Kolmogorov-Smirnov test finds nothing with p < 0.001. Where seeds are fixed, nothing fails by
chance.
"""

from __future__ import annotations

from collections.abc import Iterable

from scipy.stats import ks_2samp

P_MIN = 0.001

Numbers = dict[str, list[float]]
"""By what is summed up: a number for each run."""


def gathered(runs: Iterable[dict[str, float]]) -> Numbers:
    rows = list(runs)
    return {name: [row[name] for row in rows] for name in rows[0]}


def differing(one: Numbers, other: Numbers) -> set[str]:
    """What both have and do not agree on."""
    return {name for name in one.keys() & other.keys() if ks_2samp(one[name], other[name]).pvalue < P_MIN}
