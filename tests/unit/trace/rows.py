"""Rows for the tests of the trace, and ways to cut them into batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from epicast.core.records import Kind
from epicast.trace.batch import DTYPES, TEXTS, Batch, Names
from epicast.trace.schema import KIND_TEXTS

Row = tuple[int, ...]
KINDS = [int(kind) for kind in Kind]


def batch(rows: Sequence[Row]) -> Batch:
    columns: Any = zip(*rows, strict=True) if rows else [()] * len(DTYPES)
    return Batch(**{name: np.array(column, DTYPES[name]) for name, column in zip(DTYPES, columns, strict=True)})


def cut(rows: Sequence[Row], *places: int) -> list[Batch]:
    """The rows as one batch before each place and one after the last."""
    edges = [0, *sorted(places), len(rows)]
    return [batch(rows[start:stop]) for start, stop in pairwise(edges)]


def some_names() -> Names:
    names = Names()
    for text in ("flood", "app", "loss", "prices"):
        names.code(text)
    return names


def some_rows(count: int) -> list[Row]:
    """Rows in which neighbours often agree, as in a real trace, and every column varies."""
    return [
        (
            *(1000 * (n // 4), KINDS[n % len(KINDS)], n % 7, n % 5 - 1, n // 50, n // 10),
            *(n % 3, 90 + n // 20, 1 + n // 9 % 2, 3 * (n // 6 % 2), 4 * (n // 30 % 2), n // 40 % 2),
        )
        for n in range(count)
    ]


def as_stored(rows: Sequence[Row], names: Names) -> list[dict[str, Any]]:
    """What reading these rows back should give."""
    stored = []
    for number, row in enumerate(rows):
        values: dict[str, Any] = {"row": number, **dict(zip(DTYPES, row, strict=True))}
        values["kind"] = KIND_TEXTS[values["kind"]]
        stored.append(values | {name: names[values[name]] for name in TEXTS})
    return stored


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
