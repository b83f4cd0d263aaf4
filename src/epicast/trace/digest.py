"""One short text that stands for all rows of a trace: two runs did the same if and only if their digests are equal.

Each column has a running hash over its little-endian bytes, so where one batch ends and the next begins leaves no mark.
Columns that hardly change from row to row are hashed as their runs, that is the rows where the value changes and the
values from there on: the same content in far fewer bytes, and hashing is most of the work. Codes are renumbered by
first use in their column and the texts follow in that order, so it does not matter which texts a driver interned first,
or interned and never used.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from epicast.trace.batch import DTYPES, TEXTS, Batch, Column, Int32s, Names

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

SIZE_BYTES = 16  # of the digest that is shown
RESTLESS = ("kind", "node", "peer", "hops")
"""The columns that are hashed row by row."""


class TraceDigest:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.rows = 0
        self._plain = {name: _hash() for name in RESTLESS}
        self._runs = {name: _Runs() for name in DTYPES if name not in RESTLESS}

    def update(self, batch: Batch) -> None:
        if not batch.rows:
            return
        for name, column in batch.columns():
            if name in self._plain:
                self._plain[name].update(_little_endian(column))
            else:
                self._runs[name].update(column, self.rows, coded=name in TEXTS)
        self.rows += batch.rows

    def hexdigest(self) -> str:
        """The digest of the rows so far; more may follow."""
        total = _hash(self.rows.to_bytes(8, "little"))
        for plain in self._plain.values():
            total.update(plain.digest())
        for runs in self._runs.values():
            total.update(runs.starts.digest() + runs.values.digest() + _digest_of(runs.texts(self.names)))
        return total.hexdigest()[: 2 * SIZE_BYTES]


class _Runs:
    """Hashes of one column's runs: the row at which each begins, and its value."""

    def __init__(self) -> None:
        self.starts, self.values = _hash(), _hash()
        self._order = _FirstUse()
        self._last: int | None = None

    def update(self, column: Column, first_row: int, *, coded: bool) -> None:
        starts = np.flatnonzero(column[1:] != column[:-1]) + 1
        if column[0] != self._last:
            starts = np.concatenate(([0], starts))
        self._last = int(column[-1])
        values = column[starts]
        if coded and len(values):
            values = self._order.renumber(values)
        self.starts.update(_little_endian(starts.astype(np.int64) + first_row))
        self.values.update(_little_endian(values))

    def texts(self, names: Names) -> list[str]:
        return [names[code] for code in self._order.codes]


class _FirstUse:
    """Numbers the codes of one column 0, 1, 2, ... as they first appear."""

    def __init__(self) -> None:
        self.codes: list[int] = []  # by their new number
        self._number = np.full(1, -1, np.int32)  # new number by code, -1 if not met yet

    def renumber(self, codes: Column) -> Int32s:
        assert codes.min() >= 0
        highest = int(codes.max())
        if highest >= len(self._number):
            self._number = np.pad(self._number, (0, highest + 1 - len(self._number)), constant_values=-1)
        numbers = self._number[codes]
        if numbers.min() < 0:
            self._learn(codes[numbers < 0])
            numbers = self._number[codes]
        return numbers

    def _learn(self, unknown: Column) -> None:
        codes, first = np.unique(unknown, return_index=True)
        for code in codes[np.argsort(first)].tolist():
            self._number[code] = len(self.codes)
            self.codes.append(code)


def _hash(start: bytes = b"") -> HASH:
    """SHA-256: processors have instructions for it, which makes it twice as fast as BLAKE2 there."""
    return sha256(start, usedforsecurity=False)


def _digest_of(texts: list[str]) -> bytes:
    total = _hash()
    for text in texts:
        encoded = text.encode()
        total.update(len(encoded).to_bytes(8, "little") + encoded)
    return total.digest()


def _little_endian(column: Column) -> memoryview:
    return np.ascontiguousarray(column, column.dtype.newbyteorder("<")).data
