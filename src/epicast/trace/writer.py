"""From batches of numbers to Parquet parts, in the background.

Rows are gathered into groups of a fixed size, so the same rows give the same files however they were batched. The parts
keep their temporary names until `publish`, because only the owner of the run knows when all of it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from epicast.core.errors import EpicastError
from epicast.core.records import FIRST_KEPT, Level
from epicast.trace.background import Background
from epicast.trace.batch import DTYPES, TEXTS, Batch, Column, Names
from epicast.trace.digest import TraceDigest
from epicast.trace.files import one_line
from epicast.trace.parquet import GROUP_ROWS, ParquetFile, are_wide
from epicast.trace.schema import EVENTS, KIND_TEXTS

PART_ROWS = 32 * GROUP_ROWS
"""Rows of one file: some 60 to 120 MB, a good bite for a Spark task."""


class TraceWriter:
    """Writes `part-00000.parquet` and so on. A run without rows gets one part too, so that readers find a schema."""

    def __init__(
        self,
        folder: Path,
        level: Level,
        names: Names,
        *,
        digest: TraceDigest | None = None,
        group_rows: int = GROUP_ROWS,
        part_rows: int = PART_ROWS,
    ) -> None:
        self.folder, self.names, self.digest = folder, names, digest
        self.rows = 0  # handed in so far
        self.parts: list[ParquetFile] = []  # closed
        self._first_kept = FIRST_KEPT[level]
        self._group = _Group(group_rows)
        self._part: ParquetFile | None = None
        self._part_rows = part_rows
        self._closed = False
        self._background = Background(self._take, "trace writer")

    def write(self, batch: Batch) -> None:
        """Take the rows over. Waits if the disk is slower than the run; raises if earlier rows could not be written."""
        assert not self._closed, "write after close"
        if not batch.rows:
            return
        try:
            self._background.put(batch)
        except Exception as error:
            raise _unwritable(self.folder, error) from error
        self.rows += batch.rows

    def close(self) -> None:
        """Write the rest and close the last part. On failure all that `abort` does is done, then it raises."""
        if self._closed:
            return
        try:
            self._background.close()
            if self._group.rows or not self.rows:
                self._flush()
            self._end_part()
        except Exception as error:
            self.abort()
            raise _unwritable(self.folder, error) from error
        self._closed = True

    def abort(self) -> None:
        """Give up what is not in a closed part."""
        self._closed = True
        self._background.abort()
        if self._part is not None:
            self._part.discard()
            self._part = None

    def publish(self) -> None:
        """Give the closed parts their names."""
        for part in self.parts:
            part.publish()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    # In the background, until it has ended

    def _take(self, batch: Batch) -> None:
        assert batch.kind.min() >= self._first_kept, f"a row of kind {batch.kind.min()} is not kept at this level"
        if self.digest is not None:
            self.digest.update(batch)
        start = 0
        while start < batch.rows:
            start += self._group.fill(batch, start)
            if self._group.full:
                self._flush()

    def _flush(self) -> None:
        group = self._group
        if self._part is None:
            wide = are_wide(group["node"], group["peer"], group["source"])
            path = self.folder / f"part-{len(self.parts):05}.parquet"
            self._part = ParquetFile(path, EVENTS, wide_ids=wide)
        if group.rows:
            self._part.write(group.encode(self.names.texts))
            group.clear()
        if self._part.rows >= self._part_rows:
            self._end_part()

    def _end_part(self) -> None:
        if self._part is not None:
            self._part.close()
            self.parts.append(self._part)
            self._part = None


class _Group:
    """The rows of one row group, gathered in place."""

    def __init__(self, size: int) -> None:
        self.size, self.rows = size, 0
        self._first = 0  # its position in the trace
        self._columns = {name: np.empty(size, dtype) for name, dtype in DTYPES.items()}

    @property
    def full(self) -> bool:
        return self.rows == self.size

    def __getitem__(self, name: str) -> Column:
        return self._columns[name][: self.rows]

    def fill(self, batch: Batch, start: int) -> int:
        """Take rows from `start` on; returns how many found room."""
        count = min(self.size - self.rows, batch.rows - start)
        for name, column in batch.columns():
            self._columns[name][self.rows : self.rows + count] = column[start : start + count]
        self.rows += count
        return count

    def clear(self) -> None:
        self._first += self.rows
        self.rows = 0

    def encode(self, texts: Sequence[str]) -> pa.RecordBatch:
        arrays: dict[str, pa.Array] = {"row": pa.array(np.arange(self._first, self._first + self.rows))}
        for name in DTYPES:
            table = texts if name in TEXTS else KIND_TEXTS if name == "kind" else None
            arrays[name] = pa.array(self[name]) if table is None else dictionary(self[name], table)
        return pa.RecordBatch.from_arrays([arrays[name] for name in EVENTS.names], schema=EVENTS)


def dictionary(codes: Column, texts: Sequence[str]) -> pa.DictionaryArray:
    """The texts of the codes, of which only those in use are stored: topics may be many."""
    lowest, highest = int(codes.min()), int(codes.max())
    assert lowest >= 0, f"code {lowest}"
    assert highest < len(texts), f"code {highest} of {len(texts)} texts"
    if lowest == highest:
        used, numbers = [lowest], np.zeros(len(codes), np.int32)
    else:
        met = np.bincount(codes) > 0
        used = np.flatnonzero(met).tolist()
        numbers = (np.cumsum(met, dtype=np.int32) - 1)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array([texts[code] for code in used], pa.string()))


def _unwritable(folder: Path, error: BaseException) -> EpicastError:
    return EpicastError(f"cannot write the trace in {folder}: {one_line(error)}")
