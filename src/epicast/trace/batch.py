"""What a driver hands to the trace: rows as columns of numbers, and the table of the few texts they refer to.

A driver appends to flat buffers while it runs and now and then hands over a batch. Texts are interned: a row holds the
code, `Names` holds the text once. Where there is no process, a row holds `core.ids.NOBODY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt8s = npt.NDArray[np.uint8]
Column = npt.NDArray[np.integer]

DTYPES: dict[str, type[np.integer]] = {
    "time_us": np.int64,
    "kind": np.uint8,
    "node": np.int64,
    "peer": np.int64,
    "source": np.int64,
    "seq": np.int64,
    "hops": np.int32,
    "bytes": np.int32,
    "layer": np.int32,
    "detail": np.int32,
    "topic": np.int32,
    "flags": np.int32,
}
TEXTS = ("layer", "detail", "topic")
"""The columns that hold codes of `Names`."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in the order in which they happened. The trace copies them: a driver may use its buffers again."""

    time_us: Int64s
    kind: UInt8s  # a core.records.Kind
    node: Int64s
    peer: Int64s
    source: Int64s
    seq: Int64s
    hops: Int32s
    bytes: Int32s
    layer: Int32s
    detail: Int32s
    topic: Int32s
    flags: Int32s

    def __post_init__(self) -> None:
        for name, column in self.columns():
            assert column.dtype == DTYPES[name], f"{name} is {column.dtype}, not {np.dtype(DTYPES[name])}"
            assert column.shape == self.time_us.shape, f"{name} has {column.shape} rows, not {self.time_us.shape}"

    @property
    def rows(self) -> int:
        return len(self.time_us)

    def columns(self) -> Iterator[tuple[str, Column]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))


class Names:
    """Texts by number, in the order of first use. It only grows, so a code stays good while others are added."""

    __slots__ = ("codes", "texts")

    def __init__(self) -> None:
        self.texts = [""]  # code 0: nothing to say
        self.codes = {"": 0}

    def code(self, text: str) -> int:
        code = self.codes.get(text)
        if code is None:
            # The text goes in first: a reader in another thread that meets the code must find it.
            self.texts.append(text)
            code = self.codes[text] = len(self.texts) - 1
        return code

    def __getitem__(self, code: int) -> str:
        assert 0 <= code < len(self.texts), f"no text has the code {code}"
        return self.texts[code]

    def __len__(self) -> int:
        return len(self.texts)
