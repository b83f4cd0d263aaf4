"""Rows of a made-up trace: pieces in any order go in, batches in the order of time come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicast.core.ids import NOBODY
from epicast.core.records import Kind
from epicast.trace.batch import DTYPES, Batch, Column, Int64s

DEFAULTS: dict[str, int] = {"peer": NOBODY, "source": NOBODY, "seq": NOBODY} | dict.fromkeys(
    ("hops", "bytes", "layer", "detail", "topic", "flags"), 0
)
# What one process does at one moment: it receives, finds a parent, delivers, and only then sends.
ORDER = np.full(32, 3, np.int64)
ORDER[[Kind.JOIN, Kind.LINK_UP, Kind.PUBLISH, Kind.RECEIVE, Kind.DUPLICATE, Kind.DROP]] = 0
ORDER[[Kind.PARENT, Kind.REPAIR]] = 1
ORDER[Kind.DELIVER] = 2


class Rows:
    """Holds rows back until it is sure that none before them is to come."""

    def __init__(self, write: Callable[[Batch], None]) -> None:
        self._write = write
        self._pieces: list[dict[str, Column]] = []

    def add(self, kind: Kind, time_us: Int64s, node: Int64s | int, **columns: Any) -> None:
        """One row for each time; a number stands for a column of it. Columns that are not given say nothing."""
        given = DEFAULTS | {"time_us": time_us, "kind": kind, "node": node} | columns
        piece = {name: np.broadcast_to(np.asarray(given[name], dtype), time_us.shape) for name, dtype in DTYPES.items()}
        self._pieces.append(piece)

    def write_before(self, time_us: int) -> None:
        """Rows of this time and later wait for the next call."""
        rows = {name: np.concatenate([piece[name] for piece in self._pieces]) for name in DTYPES}
        times = rows["time_us"]
        due, waits = np.flatnonzero(times < time_us), np.flatnonzero(times >= time_us)
        key = times[due] * 4 + ORDER[rows["kind"][due]]
        order = due[np.argsort(key, kind="stable")]
        self._write(Batch(**{name: column[order] for name, column in rows.items()}))
        self._pieces = [{name: column[waits] for name, column in rows.items()}]
