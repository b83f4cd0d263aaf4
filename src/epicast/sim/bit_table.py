"""A table of bits that grows in both directions: eight pairs to a byte, so that a million processes stay affordable."""

from __future__ import annotations

import numpy as np

from epicast.trace.batch import Int64s, UInt8s

_BIT = (1 << np.arange(8)).astype(np.uint8)


def pack(mask: np.typing.NDArray[np.bool_]) -> UInt8s:
    return np.packbits(mask, bitorder="little")


def positions(bits: UInt8s) -> Int64s:
    """Where the bits are set."""
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)


class BitTable:
    def __init__(self) -> None:
        self._bytes = np.zeros((16, 8), np.uint8)

    def set(self, rows: Int64s, columns: Int64s) -> None:
        if not len(rows):
            return
        self._make_room(int(rows.max()) + 1, int(columns.max()) // 8 + 1)
        np.bitwise_or.at(self._bytes.reshape(-1), rows * self._bytes.shape[1] + (columns >> 3), _BIT[columns & 7])

    def row(self, at: int, width: int) -> UInt8s:
        """The first `width` bytes of a row, not to be changed."""
        self._make_room(at + 1, width)
        return self._bytes[at, :width]

    def count(self) -> int:
        return int(np.bitwise_count(self._bytes).sum(dtype=np.int64))

    def _make_room(self, rows: int, width: int) -> None:
        have_rows, have_width = self._bytes.shape
        if rows > have_rows or width > have_width:
            larger = np.zeros((_grown(have_rows, rows), _grown(have_width, width)), np.uint8)
            larger[:have_rows, :have_width] = self._bytes
            self._bytes = larger


def _grown(have: int, wanted: int) -> int:
    return have if wanted <= have else max(wanted, have + have // 2)
