"""Rows gathered into groups of a fixed size, the unit in which a trace is encoded and written.

Groups are cut by row count alone, so the same rows give the same files however a driver batched them. They are large
because a thread beside a busy interpreter waits for its turn between any two calls: few long calls keep it going.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from epicast.trace.batch import DTYPES, TEXTS, Batch, Column, Names
from epicast.trace.schema import EVENTS, KIND_TEXTS

GROUP_ROWS = 1 << 19
"""Also the row groups of the files. Measured: from a quarter of a million to two million, all sizes do equally well."""


class Group:
    """The columns of one group, filled in place."""

    __slots__ = ("columns", "first", "rows", "size")

    def __init__(self, first: int, size: int) -> None:
        self.first, self.size, self.rows = first, size, 0
        self.columns = {name: np.empty(size, dtype) for name, dtype in DTYPES.items()}

    def fill(self, batch: Batch, start: int) -> int:
        """Copy rows from `start` on; returns how many found room."""
        count = min(self.size - self.rows, batch.rows - start)
        for name, column in batch.columns():
            self.columns[name][self.rows : self.rows + count] = column[start : start + count]
        self.rows += count
        return count

    def column(self, name: str) -> Column:
        return self.columns[name][: self.rows]

    def encode(self, names: Names, first_kept: int = 0) -> pa.RecordBatch:
        """In the schema of the trace. A row of a kind below `first_kept` is a driver's mistake."""
        arrays = [pa.array(np.arange(self.first, self.first + self.rows))]
        for name in DTYPES:
            column = pa.array(self.column(name))
            if name == "kind":
                column = _texts(column, lambda code: _kind_text(code, first_kept))
            elif name in TEXTS:
                column = _texts(column, names.__getitem__)
            arrays.append(column)
        return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


class Groups:
    """Passes on full groups as rows come in, and the last one at the end."""

    def __init__(self, take: Callable[[Group], None], size: int = GROUP_ROWS) -> None:
        self.rows = 0
        self._take, self._size = take, size
        self._group = Group(0, size)

    def add(self, batch: Batch) -> None:
        start = 0
        while start < batch.rows:
            start += self._group.fill(batch, start)
            if self._group.rows == self._size:
                self._pass_on()
        self.rows += batch.rows

    def end(self) -> None:
        if self._group.rows:
            self._pass_on()

    def _pass_on(self) -> None:
        group, self._group = self._group, Group(self._group.first + self._group.rows, self._size)
        self._take(group)


def _texts(codes: pa.Array, text_of: Callable[[int], str]) -> pa.DictionaryArray:
    """The texts of the codes. Only those in use are stored, in the order of first use: topics may be many."""
    encoded = codes.dictionary_encode()
    texts = [text_of(code) for code in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string()))


def _kind_text(kind: int, first_kept: int) -> str:
    assert kind >= first_kept, f"a row of kind {kind} is not kept at this level"
    assert kind in KIND_TEXTS, f"no kind has the code {kind}"
    return KIND_TEXTS[kind]
