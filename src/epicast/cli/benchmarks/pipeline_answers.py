"""Whether two ways of analysing the same runs found the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

TOLERANCE = 1e-9
"""Sums of fractions depend on the order in which they are taken, in their last digits."""


def differences(one: Path, other: Path) -> list[str]:
    """What the answers in two files do not agree on, as `run, what: this and that`; nothing if they are equal."""
    import pyarrow.parquet as pq

    rows = [{row["run"]: row for row in pq.read_table(file).to_pylist()} for file in (one, other)]
    names = sorted(rows[0].keys() | rows[1].keys())
    return [
        f"run {name}, {what}"
        for name in names
        for what in _row_differences(rows[0].get(name, {}), rows[1].get(name, {}))
    ]


def _row_differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    a, b = _flat(one), _flat(other)
    return [
        f"{key}: {a.get(key)!r} and {b.get(key)!r}"
        for key in sorted(a.keys() | b.keys())
        if not _equal(a.get(key), b.get(key))
    ]


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Every single answer by its name."""
    found: dict[str, Any] = {"rows": row.get("rows"), "error": row.get("error")}
    found |= {f"guarantee {verdict['guarantee']}": verdict for verdict in row.get("verdicts", ())}
    found |= {f"metric {name}": value for name, value in row.get("metrics", ())}
    found |= {f"histogram {each['name']} at {each['value']:.9g}": each["count"] for each in row.get("histograms", ())}
    return found | {f"series {each['name']} at {each['time_s']:.9g}": each["value"] for each in row.get("series", ())}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == other)
