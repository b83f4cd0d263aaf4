"""Distributions of whole numbers: all of them in one table of counts, so that one question answers for all.

Percentiles are exact: the smallest value that at least so many percent do not exceed. All but the spread is computed in
whole numbers and divided at the end, so every kernel gives the same digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.bins import VALUES_MAX, bounded, fine_bin_sql
from epicast.pipeline.metrics.measures import Histogram, Measures

PERCENTS = (5, 25, 50, 75, 90, 99)
FEW = ("mean", "p50", "p90", "p99", "max")
MANY = ("mean", *(f"p{percent}" for percent in PERCENTS), "max", "cv", "gini")

_WORDS = {
    "mean": "mean",
    **{f"p{percent}": f"{percent}th percentile" for percent in PERCENTS},
    "max": "largest",
    "cv": "standard deviation divided by the mean (no unit)",
    "gini": "Gini coefficient, 0 if all are equal (no unit)",
}


@dataclass(frozen=True)
class Distribution:
    name: str
    meaning: str  # with the unit
    unit: int = 1  # so many of `amount` are one of the unit of the name
    statistics: tuple[str, ...] = FEW

    def metrics(self) -> dict[str, str]:
        """The metrics that it gives, with their meanings."""
        return {f"{self.name}_{each}": f"{_WORDS[each]}: {self.meaning}" for each in self.statistics}


def measure(kernel: Kernel, counts: Mapping[Distribution, str]) -> Measures:
    """The metrics and histogram of each that has any value. The SQL of each gives the columns amount and times; the
    same amount may come often."""
    kernel.define("measured_distributions", _counts_sql(list(counts.values())))
    rows = {row["which"]: row for row in kernel.query(_STATISTICS).to_pylist()}
    found = {which: each for which, each in enumerate(counts) if which in rows}
    metrics = {name: value for which, each in found.items() for name, value in _metrics(each, rows[which]).items()}
    wide = [which for which, row in rows.items() if row["different"] > VALUES_MAX]
    return Measures(metrics, _histograms(kernel, found, wide))


def _counts_sql(parts: Sequence[str]) -> str:
    """Grain: one row per distribution, by its number, and value."""
    numbered = (
        f"SELECT {which} AS which, CAST(amount AS BIGINT) AS amount, CAST(times AS BIGINT) AS times FROM ({sql}) AS p"
        for which, sql in enumerate(parts)
    )
    return f"""
        SELECT which, amount, CAST(sum(times) AS BIGINT) AS times FROM ({" UNION ALL ".join(numbered)}) AS parts
        WHERE amount IS NOT NULL AND times > 0 GROUP BY which, amount
    """


_STATISTICS = f"""
    WITH ranked AS (
        SELECT which, amount, times,
               sum(times) OVER (PARTITION BY which ORDER BY amount
                                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
               sum(times) OVER (PARTITION BY which) AS n,
               sum(amount * times) OVER (PARTITION BY which) AS total
        FROM measured_distributions)
    SELECT which, count(*) AS different, CAST(max(n) AS BIGINT) AS n, CAST(max(total) AS BIGINT) AS total,
           max(amount) AS largest,
           {", ".join(f"min(CASE WHEN 100 * upto >= {p} * n THEN amount END) AS p{p}" for p in PERCENTS)},
           sum(CAST(times AS DOUBLE) * (amount - CAST(total AS DOUBLE) / n) * (amount - CAST(total AS DOUBLE) / n))
               AS squares,
           sum(CAST(amount AS DOUBLE) * times * CAST(2 * upto - times - n AS DOUBLE)) AS ranks
    FROM ranked GROUP BY which
"""


def _metrics(distribution: Distribution, row: dict[str, Any]) -> dict[str, float]:
    n, total, unit = row["n"], row["total"], distribution.unit
    values = {"mean": total / n / unit, "max": row["largest"] / unit}
    values |= {f"p{percent}": row[f"p{percent}"] / unit for percent in PERCENTS}
    if total > 0:
        values["cv"] = math.sqrt(row["squares"] / n) / (total / n)
        values["gini"] = row["ranks"] / (n * total)
    return {f"{distribution.name}_{each}": values[each] for each in distribution.statistics if each in values}


def _histograms(kernel: Kernel, found: Mapping[int, Distribution], wide: Sequence[int]) -> Histogram:
    counts: dict[int, list[tuple[int, int]]] = {which: [] for which in found}
    for row in kernel.query(_histogram_sql(wide)).to_pylist():
        counts[row["which"]].append((row["amount"], row["times"]))
    return [
        (each.name, value, times)
        for which, each in found.items()
        for value, times in bounded(counts[which], each.unit, binned=which in wide)
    ]


def _histogram_sql(wide: Sequence[int]) -> str:
    if not wide:
        return "SELECT which, amount, times FROM measured_distributions"
    value = f"CASE WHEN which IN ({', '.join(map(str, wide))}) THEN {fine_bin_sql('amount')} ELSE amount END"
    return f"""
        SELECT which, amount, CAST(sum(times) AS BIGINT) AS times
        FROM (SELECT which, times, {value} AS amount FROM measured_distributions) AS binned
        GROUP BY which, amount
    """
