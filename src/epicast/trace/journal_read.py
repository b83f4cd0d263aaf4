"""Journals as they are found on disk, of processes that ended in any way.

A journal without a clean end is read up to its last whole row: that is what a killed process leaves. If rows are
missing that had been there, or there was no room for them, `shortfall` says so.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.trace import journal_format as layout
from epicast.trace import lock
from epicast.trace.batch import Int64s
from epicast.trace.files import one_line
from epicast.trace.schema import KIND_TEXTS

Rows = npt.NDArray[np.void]
"""With the fields of `ROWS`."""

ROWS = np.dtype(
    {
        "names": [*layout.ROW_FIELDS, "mark"],
        "formats": ["<i8"] * 4 + ["<i4"] * 6 + ["u1"],
        "offsets": [0, 8, 16, 24, 32, 36, 40, 44, 48, 52, 63],
        "itemsize": layout.SLOT_BYTES,
    }
)
CHUNK_ROWS = 1 << 17
DEPTH_MAX = 3
_KINDS = np.zeros(256, np.bool_)
_KINDS[[kind + 1 for kind in KIND_TEXTS]] = True


class Picture(NamedTuple):
    """What one process tells of one overlay at one moment."""

    time_us: int
    overlay: str
    flow: str
    peer: Int64s
    value: Int64s


@dataclass(frozen=True)
class StoredJournal:
    path: Path
    who: layout.Who
    rows: int
    ended_us: int | None  # None: without a word
    how: str
    shortfall: str  # why rows are missing; empty if none is
    texts: list[str]  # by code
    names: dict[int, str]  # ids by number, of all whom it met

    @property
    def level(self) -> Level:
        return Level[self.who.level.upper()]

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Rows]:
        """All rows in order, checked; each chunk is the caller's own."""
        last_us = 0
        while start < self.rows:
            chunk = self._load(start, min(size, self.rows - start))
            self._require_sound(chunk, start, last_us)
            start, last_us = start + len(chunk), int(chunk["time_us"][-1])
            yield chunk

    def counters(self) -> dict[str, Any]:
        """What the process counted itself, if it came to tell."""
        try:
            found = msgspec.json.decode((self.path / layout.END_FILE).read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}
        return found if isinstance(found, dict) else {}

    def moments(self) -> dict[int, tuple[int, int]]:
        """When it took pictures, and where they are in the file: from, to."""
        found: dict[int, tuple[int, int]] = {}
        try:
            content = (self.path / layout.PICTURES_FILE).read_bytes()
        except OSError as error:
            raise EpicastError(f"cannot read {self.path / layout.PICTURES_FILE}: {one_line(error)}") from None
        at, head = 0, layout.PICTURE.size
        while at + head <= len(content):
            time_us, _, _, edges = layout.PICTURE.unpack_from(content, at)
            end = at + head + edges * layout.EDGE.size
            if end > len(content):
                break  # cut off by the end of the process
            found[time_us] = (found.get(time_us, (at, 0))[0], end)
            at = end
        return found

    def pictures(self, place: tuple[int, int]) -> Iterator[Picture]:
        with (self.path / layout.PICTURES_FILE).open("rb") as file:
            file.seek(place[0])
            content = file.read(place[1] - place[0])
        at, head = 0, layout.PICTURE.size
        while at < len(content):
            time_us, overlay, flow, count = layout.PICTURE.unpack_from(content, at)
            edges = np.frombuffer(content, "<i8", 2 * count, at + head).astype(np.int64).reshape(-1, 2)
            yield Picture(time_us, self._text(overlay), self._text(flow), edges[:, 0], edges[:, 1])
            at += head + count * layout.EDGE.size

    def _text(self, code: int) -> str:
        if code >= len(self.texts):
            raise EpicastError(f"{self.path} is damaged: {layout.NAMES_FILE} lacks text {code}")
        return self.texts[code]

    def _load(self, start: int, count: int) -> Rows:
        file = self.path / layout.ROWS_FILE
        try:
            chunk: Rows = np.fromfile(file, ROWS, count, offset=(start + 1) * layout.SLOT_BYTES)
        except OSError as error:
            raise EpicastError(f"cannot read {file}: {one_line(error)}") from None
        if len(chunk) < count:
            raise EpicastError(f"{file} became shorter while it was read: stop whatever changes it")
        return chunk

    def _require_sound(self, chunk: Rows, start: int, last_us: int) -> None:
        time_us = chunk["time_us"]
        wrong = ~_KINDS[chunk["mark"]]
        wrong[0] |= time_us[0] < last_us
        wrong[1:] |= time_us[1:] < time_us[:-1]
        for column in ("layer", "detail", "topic"):
            wrong |= (chunk[column] < 0) | (chunk[column] >= len(self.texts))
        if wrong.any():
            raise EpicastError(f"{self.path} is damaged at row {start + int(wrong.argmax())}: leave this journal out")


def find_journals(folder: Path) -> list[Path]:
    """The folders of journals in a folder, itself included, and up to DEPTH_MAX below it."""
    below = (folder.glob("*/" * depth + layout.WHO_FILE) for depth in range(DEPTH_MAX + 1))
    return sorted(file.parent for found in below for file in found)


def open_journal(path: Path) -> StoredJournal:
    who = _who(path)
    if lock.is_held(path):
        raise EpicastError(f"{path} is still being written by {who.node_id}: stop the node first")
    try:
        size = (path / layout.ROWS_FILE).stat().st_size
        head = _head(path)
        rows = _count_rows(path / layout.ROWS_FILE, size // layout.SLOT_BYTES - 1)
        names = list(layout.name_records((path / layout.NAMES_FILE).read_bytes()))
    except OSError as error:
        raise EpicastError(f"{path} has lost a file: {one_line(error)}") from None
    return StoredJournal(
        path,
        who,
        rows,
        head.end_us if head.how else None,
        layout.HOWS[head.how],
        _shortfall(head, rows, size),
        ["", *(record.text for record in names if record.sort == layout.TEXT)],
        {layout.number_of(record.text): record.text for record in names if record.sort == layout.ID},
    )


class _Head(NamedTuple):
    lost: int
    lost_since_us: int
    rows: int | None  # None: the file was never closed
    end_us: int
    how: int


def _who(path: Path) -> layout.Who:
    file = path / layout.WHO_FILE
    try:
        content = msgspec.json.decode(file.read_bytes())
    except FileNotFoundError:
        raise EpicastError(f"{path} is not a journal: it has no {layout.WHO_FILE}") from None
    except OSError as error:
        raise EpicastError(f"cannot read {file}: {one_line(error)}") from None
    except msgspec.DecodeError:
        raise EpicastError(f"{file} is damaged: leave this journal out") from None
    if not isinstance(content, dict) or content.get("format") != layout.FORMAT:
        raise EpicastError(f"{path} is not a journal: its {layout.WHO_FILE} is of something else")
    _require_version(path, content.get("format_version"))
    try:
        who = msgspec.convert(content, layout.Who)
    except msgspec.ValidationError as error:
        raise EpicastError(f"{file} is damaged: {one_line(error)}") from None
    if who.number != layout.number_of(who.node_id) or who.level.upper() not in Level.__members__:
        raise EpicastError(f"{file} is damaged: number {who.number}, level {who.level!r}")
    return who


def _head(path: Path) -> _Head:
    with (path / layout.ROWS_FILE).open("rb") as file:
        content = file.read(layout.SLOT_BYTES)
    if len(content) < layout.SLOT_BYTES or not content.startswith(layout.MAGIC):
        raise EpicastError(f"{path} is damaged: {layout.ROWS_FILE} has no head; leave this journal out")
    _, version, slot, lost, since_us, rows, end_us, how = layout.HEAD.unpack_from(content)
    _require_version(path, version)
    if slot != layout.SLOT_BYTES or how >= len(layout.HOWS):
        raise EpicastError(f"{path} is damaged: the head of {layout.ROWS_FILE} makes no sense; leave this journal out")
    return _Head(lost, since_us, rows - 1 if rows else None, end_us, how)


def _require_version(path: Path, version: object) -> None:
    known = layout.FORMAT_VERSION
    if version != known:
        raise EpicastError(f"{path} has journal format {version}, this version reads {known}: use a matching epicast")


def _count_rows(file: Path, slots: int) -> int:
    """Rows come one after the other, so the first empty slot is the end."""
    handle = os.open(file, os.O_RDONLY)

    def is_empty(slot: int) -> bool:
        return os.pread(handle, 1, (slot + 2) * layout.SLOT_BYTES - 1) == b"\0"

    try:
        return bisect_left(range(slots), True, key=is_empty)
    finally:
        os.close(handle)


def _shortfall(head: _Head, rows: int, size: int) -> str:
    if head.lost:
        return f"there was no room for {head.lost:,} rows"
    if head.rows is not None and head.rows != rows:
        return f"{rows:,} of {head.rows:,} rows are left"
    if head.rows is None and size % layout.SEGMENT_BYTES:
        return f"its file was cut after {rows:,} rows"
    return ""
