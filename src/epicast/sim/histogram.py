"""How often each whole number occurred: exact percentiles in memory that does not grow with the count."""

from __future__ import annotations

import numpy as np

from epicast.trace.batch import Int64s

BUFFER = 1 << 20


class Histogram:
    def __init__(self) -> None:
        self._values = np.empty(0, np.int64)  # ascending
        self._counts = np.empty(0, np.int64)
        self._buffer: list[Int64s] = []
        self._buffered = 0

    def add(self, values: Int64s) -> None:
        self._buffer.append(values)
        self._buffered += len(values)
        if self._buffered >= BUFFER:
            self._merge()

    def __len__(self) -> int:
        return int(self._counts.sum()) + self._buffered

    def mean(self) -> float | None:
        self._merge()
        total = len(self)
        pairs = zip(self._values.tolist(), self._counts.tolist(), strict=True)  # Python's numbers do not overflow
        return sum(value * times for value, times in pairs) / total if total else None

    def maximum(self) -> int | None:
        self._merge()
        return int(self._values[-1]) if len(self._values) else None

    def percentile(self, percent: int) -> int | None:
        """The smallest value that at least so many percent do not exceed."""
        self._merge()
        if not len(self._values):
            return None
        rank = -(-percent * len(self) // 100)
        return int(self._values[np.searchsorted(np.cumsum(self._counts), max(1, rank))])

    def _merge(self) -> None:
        if not self._buffered:
            return
        values, counts = np.unique(np.concatenate(self._buffer), return_counts=True)
        self._buffer, self._buffered = [], 0
        both = np.concatenate([self._values, values])
        self._values, place = np.unique(both, return_inverse=True)
        merged = np.zeros(len(self._values), np.int64)
        np.add.at(merged, place, np.concatenate([self._counts, counts]))
        self._counts = merged
