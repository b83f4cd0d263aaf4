"""How numbers are written in checks and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from epicast.pipeline.confidence import Stat

UNKNOWN = "\N{EN DASH}"


def amount(value: float) -> str:
    """Three digits that count: 0.431, 4.19, 15.4 and 1,124."""
    return _written(value, _decimals(value))


def _decimals(value: float) -> int:
    size = abs(value)
    if size >= 100 or value == round(value):
        return 0
    return 1 if size >= 10 else 2 if size >= 1 else 3


def _written(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{decimals}f}" if not 0 < abs(value) < 0.01 else f"{value:.2g}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else UNKNOWN


def mean(stat: Stat, unit: str = "") -> str:
    """With its 95 % interval over the seeds."""
    return f"{amount(stat.mean)}{_spaced(unit)}{_interval(stat, 1.0)}"


def mean_percent(stat: Stat) -> str:
    """Of shares of a whole, so no more than that."""
    high = None if stat.high is None else min(stat.high, max(1.0, stat.max))
    return f"{percent(stat.mean)}{_interval(replace(stat, high=high), 100.0)}"


def mean_or_nothing(stat: Stat | None, scale: float = 1.0) -> str:
    """For a cell of a table."""
    return UNKNOWN if stat is None else f"{amount(scale * stat.mean)}{_interval(stat, scale)}"


def _interval(stat: Stat, scale: float) -> str:
    """As exact as the mean. Nothing where all seeds agree, or where there is one seed only."""
    if stat.low is None or stat.high is None or stat.low == stat.high:
        return ""
    decimals = max(_decimals(scale * stat.mean), _decimals(scale * stat.low))
    return f" ({_written(scale * stat.low, decimals)} to {_written(scale * stat.high, decimals)})"


def _spaced(unit: str) -> str:
    return f" {unit}" if unit else ""


def each(texts: Mapping[str, str]) -> str:
    """What was found for each of several things: "view 4: 2.1; view 10: 8.0"."""
    return "; ".join(f"{label}: {text}" for label, text in texts.items())


def listed(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
