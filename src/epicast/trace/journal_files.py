"""The growing files of a journal. Neither of them ever raises for want of room: they say no, and the caller counts."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

from epicast.trace.journal_format import (
    END,
    FORMAT_VERSION,
    HEAD,
    HEAD_END,
    HEAD_HOW,
    HEAD_LOST,
    HEAD_ROWS,
    HOWS,
    LOST,
    MAGIC,
    ROWS,
    SEGMENT_BYTES,
    SLOT_BYTES,
)

_NEW = os.O_CREAT | os.O_EXCL


class AppendFile:
    """Whole records, one after the other."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        self.size, self.bytes_max = 0, bytes_max
        self.full = False
        self._handle = os.open(path, _NEW | os.O_WRONLY | os.O_APPEND, 0o644)

    def append(self, record: bytes) -> bool:
        """False if there is no room; from then on there is none."""
        if self.full:
            return False
        if self.size + len(record) <= self.bytes_max and self._written(record) == len(record):
            self.size += len(record)
            return True
        self.full = True
        with suppress(OSError):
            os.ftruncate(self._handle, self.size)  # half a record, if the disk took that much
        return False

    def close(self) -> None:
        os.close(self._handle)

    def _written(self, record: bytes) -> int:
        try:
            return os.write(self._handle, record)
        except OSError:
            return -1


class RowFile:
    """Slots in mapped segments: one segment is mapped at a time, and the head always."""

    def __init__(self, path: Path, rows_max: int) -> None:
        self.full = False
        self._slots_max = rows_max + 1
        self._next = 0  # where the next segment begins
        self._handle = os.open(path, _NEW | os.O_RDWR, 0o644)
        try:
            _reserve(self._handle, 0, SEGMENT_BYTES)
            self._head = mmap.mmap(self._handle, mmap.PAGESIZE)
        except BaseException:
            os.close(self._handle)
            raise
        HEAD.pack_into(self._head, 0, MAGIC, FORMAT_VERSION, SLOT_BYTES, 0, 0, 0, 0, 0)

    def first(self) -> tuple[mmap.mmap, int, int]:
        """As `grow`: there is room for it."""
        segment = self.grow()
        assert segment is not None, "the first segment was reserved"
        return segment

    def grow(self) -> tuple[mmap.mmap, int, int] | None:
        """The next segment, with the first and the last place in it where no row is; None if there is no room."""
        start, slots = self._next, self._slots_max - self._next // SLOT_BYTES
        if self.full or slots <= 0:
            self.full = True
            return None
        try:
            _reserve(self._handle, start, SEGMENT_BYTES)
            segment = mmap.mmap(self._handle, SEGMENT_BYTES, offset=start)
        except (OSError, ValueError):
            self.full = True
            return None
        self._next = start + SEGMENT_BYTES
        return segment, 0 if start else SLOT_BYTES, min(SEGMENT_BYTES, slots * SLOT_BYTES)

    def rows(self, at: int) -> int:
        """How many there are if the place of the next one is `at` in the segment."""
        return (self._next - SEGMENT_BYTES + at) // SLOT_BYTES - 1

    def tell_lost(self, lost: int, since_us: int) -> None:
        LOST.pack_into(self._head, HEAD_LOST, lost, since_us)

    def tell_end(self, time_us: int, how: str) -> None:
        """It needs no room: even on a full disk an end in good order is told from a crash."""
        END.pack_into(self._head, HEAD_END, time_us)
        self._head[HEAD_HOW] = HOWS.index(how)

    def close(self, rows: int) -> None:
        """Give back what was reserved and not used."""
        ROWS.pack_into(self._head, HEAD_ROWS, rows + 1)
        self._head.close()
        with suppress(OSError):
            os.ftruncate(self._handle, (rows + 1) * SLOT_BYTES)
        os.close(self._handle)


def _reserve(handle: int, start: int, size: int) -> None:
    """Blocks that read as zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, start, size)
    elif os.pwrite(handle, bytes(size), start) < size:
        raise OSError("no room")
