"""Numbers as people read them. None, which stands for nothing to be said, becomes a dash."""

from __future__ import annotations

from math import floor

DASH = "–"  # noqa: RUF001
_BYTES = ("B", "KB", "MB", "GB", "TB")
_THOUSANDS = ("", " k", " M", " G")


def count(value: float | None) -> str:
    """12,773"""
    return DASH if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Never rounded up: 100 % means all of it."""
    if share is None:
        return DASH
    text = f"{floor(share * 1e5) / 1e3:.3f}".rstrip("0").rstrip(".")
    return f"{text} %"


def percent_rounded(share: float | None) -> str:
    """For shares of which nobody asks whether they are all."""
    return DASH if share is None else f"{share:.0%}".replace("%", " %")


def ms(value: float | None) -> str:
    """Milliseconds; the fraction counts only where the value is small."""
    return DASH if value is None else f"{value:,.{0 if value >= 100 else 1}f} ms"


def size(value: float | None) -> str:
    """1.2 MB"""
    return DASH if value is None else _scaled(value, _BYTES, " ")


def rate(value: float | None) -> str:
    """So many a second: 1.2 M/s"""
    return DASH if value is None else f"{_scaled(value, _THOUSANDS, '')}/s"


def _scaled(value: float, units: tuple[str, ...], gap: str) -> str:
    last = len(units) - 1
    at = 0
    while at < last and abs(value) >= 999.5:
        value, at = value / 1000, at + 1
    digits = 0 if at == 0 or abs(value) >= 99.95 else 1
    return f"{value:.{digits}f}{gap}{units[at]}"
