"""From batches of numbers to Parquet parts, in the background.

The parts keep their temporary names until `publish`, because only the owner of the run knows when all of it is there.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from epicast.core.errors import EpicastError
from epicast.core.records import FIRST_KEPT, Level
from epicast.trace.background import Background
from epicast.trace.batch import Batch, Names
from epicast.trace.files import one_line
from epicast.trace.group import GROUP_ROWS, Group, Groups
from epicast.trace.parquet import ParquetFile, are_wide
from epicast.trace.schema import EVENTS

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
        group_rows: int = GROUP_ROWS,
        part_rows: int = PART_ROWS,
    ) -> None:
        self.folder, self.level, self.names = folder, level, names
        self.parts: list[ParquetFile] = []  # closed
        self._part: ParquetFile | None = None
        self._part_rows = part_rows
        self._closed = False
        self._background = Background(self._write, "trace writer")
        self._groups = Groups(self._background.put, group_rows)

    @property
    def rows(self) -> int:
        """Handed in so far."""
        return self._groups.rows

    def write(self, batch: Batch) -> None:
        """Copy the rows. Waits if the disk is slower than the run; raises if earlier rows could not be written."""
        assert not self._closed, "write after close"
        try:
            self._background.check()
            self._groups.add(batch)
        except Exception as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Write the rest and close the last part. On failure all that `abort` does is done, then it raises."""
        if self._closed:
            return
        try:
            self._groups.end()
            self._background.close()
            self._end_part()
        except Exception as error:
            self.abort()
            raise self._unwritable(error) from error
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

    def _write(self, group: Group) -> None:
        """In the background."""
        encoded = group.encode(self.names, FIRST_KEPT[self.level])
        if self._part is None:
            self._part = self._new_part(wide_ids=are_wide(*(group.column(name) for name in ("node", "peer", "source"))))
        self._part.write(encoded)
        if self._part.rows >= self._part_rows:
            self._end_part()

    def _new_part(self, *, wide_ids: bool = False) -> ParquetFile:
        return ParquetFile(self.folder / f"part-{len(self.parts):05}.parquet", EVENTS, wide_ids=wide_ids)

    def _end_part(self) -> None:
        if self._part is None and not self.parts:
            self._part = self._new_part()
        if self._part is not None:
            self._part.close()
            self.parts.append(self._part)
            self._part = None

    def _unwritable(self, error: Exception) -> EpicastError:
        return EpicastError(f"cannot write the trace in {self.folder}: {one_line(error)}")
