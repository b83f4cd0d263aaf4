"""Histograms of whole numbers with a bounded number of values.

Small numbers keep their own bin. Larger ones share one with those that agree in their leading bits, so a bin is never
wider than a fixed share of its value, however wide the range. Bins of fewer bits are unions of bins of more bits: SQL
makes fine ones, and here they are merged until they fit.
"""

from __future__ import annotations

from collections.abc import Iterable

VALUES_MAX = 512
FINE_BITS = 7  # numbers below 2 ** 7 are exact
_BIGGEST = 62  # of a signed 64-bit number


def fine_bin_sql(column: str) -> str:
    """The end of the bin of FINE_BITS that is nearer to 0. `%` takes the sign of its left side in SQL."""
    cases = " ".join(
        f"WHEN abs({column}) < {1 << exponent} THEN {1 << (exponent - FINE_BITS)}"
        for exponent in range(FINE_BITS, _BIGGEST + 1)
    )
    return f"{column} - {column} % (CASE {cases} ELSE {1 << (_BIGGEST + 1 - FINE_BITS)} END)"


def bounded(counts: Iterable[tuple[int, int]], unit: int = 1, *, binned: bool = False) -> list[tuple[float, int]]:
    """Value and count of at most VALUES_MAX bins, in order, each at its middle and divided by the unit. `binned`: the
    values are ends of fine bins."""
    bins = dict(counts)
    if len(bins) <= VALUES_MAX and not binned:
        return [(value / unit, bins[value]) for value in sorted(bins)]
    bits = FINE_BITS
    merged = _merged(bins, bits)
    while len(merged) > VALUES_MAX:
        bits -= 1
        merged = _merged(merged, bits)
    return [(_middle(edge, bits) / unit, merged[edge]) for edge in sorted(merged)]


def _merged(bins: dict[int, int], bits: int) -> dict[int, int]:
    merged: dict[int, int] = {}
    for value, count in bins.items():
        edge = value - _sign(value) * (abs(value) % _width(value, bits))
        merged[edge] = merged.get(edge, 0) + count
    return merged


def _width(value: int, bits: int) -> int:
    return 1 << max(0, abs(value).bit_length() - bits)


def _middle(edge: int, bits: int) -> float:
    return edge + _sign(edge) * (_width(edge, bits) - 1) / 2


def _sign(value: int) -> int:
    return -1 if value < 0 else 1
