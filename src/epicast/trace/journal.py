"""What one live process writes down: rows that outlive it, without a system call for each.

Rows go into a mapped file, so they are in the system's memory as soon as they are written: `kill -9` takes none of
them. (A machine that loses power does.) The file grows by whole segments whose blocks are reserved first, because
writing to a mapped file on a full disk would end the process.

A journal never stops its node. When the disk is full, or a cap is reached, rows are dropped and counted in `lost`; the
count is kept in the head of the file, and the run to which the journal belongs is not complete.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any

import msgspec

from epicast import __version__
from epicast.core.errors import EpicastError
from epicast.core.ids import NOBODY, FlowId, NodeId
from epicast.core.records import FIRST_KEPT, Level
from epicast.trace import journal_format as layout
from epicast.trace import lock
from epicast.trace.files import one_line, temporary, write_text
from epicast.trace.journal_files import AppendFile, RowFile
from epicast.trace.journal_names import NAMES_BYTES_MAX, Codes, NoRoom, Numbers

ROWS_MAX = 1 << 24
"""A gigabyte. Our guess of what a node may take of a disk unless it is told otherwise."""
PICTURES_BYTES_MAX = 1 << 28

_pack = layout.ROW.pack_into
_SLOT = layout.SLOT_BYTES
_NOTHING = 1 + max(FIRST_KEPT.values())  # above every kind
_INT32, _INT64 = (1 << 31) - 1, (1 << 63) - 1


class Journal:
    """One thread writes. The folder is locked as long as the process lives or until the journal ends."""

    def __init__(self, folder: Path, node_id: NodeId, level: Level, rows_max: int, claim: int) -> None:
        """Use `create`."""
        self.folder = folder
        self.lost = 0  # rows and pictures for which there was no room
        self._claim = claim
        self._first_kept = FIRST_KEPT[level]
        self._file = RowFile(folder / layout.ROWS_FILE, rows_max)
        self._map, self._at, self._end = self._file.first()
        self._previous: mmap | None = None
        self._names = AppendFile(folder / layout.NAMES_FILE, NAMES_BYTES_MAX)
        self._pictures = AppendFile(folder / layout.PICTURES_FILE, PICTURES_BYTES_MAX)
        self._codes, self._numbers = Codes(self._names), Numbers(self._names)
        self._last_us, self._lost_since_us = 0, 0
        self.number = self._numbers[node_id]

    @classmethod
    def create(
        cls,
        folder: str | Path,
        *,
        node_id: str,
        level: Level,
        stack_name: str,
        promises: Sequence[str],
        cluster: str = "",
        area: str = "",
        scenario: Mapping[str, Any] | None = None,
        started_us: int | None = None,
        rows_max: int = ROWS_MAX,
    ) -> Journal:
        """In a new or empty folder."""
        path = Path(folder)
        who = layout.Who(
            format=layout.FORMAT,
            format_version=layout.FORMAT_VERSION,
            node_id=node_id,
            number=layout.number_of(node_id),
            started_us=started_us,
            level=level.name.lower(),
            stack=stack_name,
            promises=list(promises),
            cluster=cluster,
            area=area,
            scenario=None if scenario is None else dict(scenario),
            epicast=__version__,
            python=platform.python_version(),
            platform=platform.platform(),
        )
        claim = _claim(path)
        journal = None
        try:
            journal = cls(path, node_id, level, rows_max, claim)
            write_text(path / layout.WHO_FILE, msgspec.json.format(_json(who)).decode() + "\n")
        except OSError as error:
            if journal is None:
                lock.release(claim)
            else:
                journal.close()
            _clear(path)
            raise EpicastError(f"cannot write a journal in {path}: {one_line(error)}") from None
        return journal

    @property
    def rows(self) -> int:
        """Written so far."""
        return self._file.rows(self._at)

    def write(
        self,
        time_us: int,
        kind: int,
        peer: NodeId = NOBODY,
        source: NodeId = NOBODY,
        seq: int = -1,
        hops: int = 0,
        bytes_: int = 0,
        layer: str = "",
        detail: str = "",
        topic: str = "",
        flags: int = 0,
    ) -> None:
        """A row of the trace, if the level keeps its kind. Time that goes back stands still."""
        if kind < self._first_kept:
            return
        if time_us < self._last_us:
            time_us = self._last_us
        if self._at == self._end and not self._grow():
            self._lose(time_us)
            return
        numbers, codes = self._numbers, self._codes
        try:
            _pack(
                self._map,
                self._at,
                time_us,
                numbers[peer],
                numbers[source],
                seq,
                hops,
                bytes_,
                codes[layer],
                codes[detail],
                codes[topic],
                flags,
                kind + 1,
            )
        except NoRoom:
            self._lose(time_us)
            return
        except struct.error:  # a peer may send any number
            size, bits = _within(bytes_, _INT32), _within(flags, _INT32)
            seq, hops = _within(seq, _INT64), _within(hops, _INT32)
            texts = codes[layer], codes[detail], codes[topic]
            _pack(self._map, self._at, time_us, numbers[peer], numbers[source], seq, hops, size, *texts, bits, kind + 1)
        self._last_us = time_us
        self._at += _SLOT

    def last_row(self) -> tuple[mmap, int]:
        """Where the last row is, for `amend`."""
        return self._map, self._at - _SLOT

    def amend(self, row: tuple[mmap, int], kind: int) -> None:
        """What was received turns out to be a duplicate only after all that follows from it has been written down."""
        where, at = row
        if self._first_kept != _NOTHING:
            where[at + _SLOT - 1] = kind + 1

    def snapshot(self, time_us: int, overlay: str, flow: FlowId | str, edges: Iterable[tuple[NodeId, int]]) -> None:
        """This process's edges of an overlay, as peer and value; none is an answer too. What is told with one time is
        one picture, and pictures of several processes belong together if they have the same time."""
        if self._first_kept == _NOTHING:
            return
        text = flow if isinstance(flow, str) else f"{layout.number_of(flow[0])}/{flow[1]}"
        try:
            packed = [layout.EDGE.pack(self._numbers[peer], _within(value, _INT64)) for peer, value in edges]
            head = layout.PICTURE.pack(time_us, self._codes[overlay], self._codes[text], len(packed))
        except NoRoom:
            self._lose(time_us)
            return
        if not self._pictures.append(head + b"".join(packed)):
            self._lose(time_us)

    def end(self, how: str, time_us: int, counters: Mapping[str, Any] | None = None) -> None:
        """The process ends in good order ("leave"), or knows that it does not ("crash")."""
        assert how in layout.HOWS and how, f"a process ends by {layout.HOWS[1:]}, not {how!r}"
        if self._first_kept == _NOTHING:
            return
        self._file.tell_end(max(time_us, self._last_us), how)
        with suppress(OSError):  # on a full disk only the counters are missing
            write_text(self.folder / layout.END_FILE, _json(counters or {}).decode())
        self.close()

    def close(self) -> None:
        """Let go of the files without a word: to whoever reads them the process crashed, unless `end` was called.
        Rows that come later are passed over."""
        if self._first_kept == _NOTHING:
            return
        self._first_kept = _NOTHING
        rows = self.rows
        for each in (self._map, self._previous):
            if each is not None:
                each.close()
        self._file.close(rows)
        self._names.close()
        self._pictures.close()
        lock.release(self._claim)

    def _grow(self) -> bool:
        grown = self._file.grow()
        if grown is None:
            return False
        if self._previous is not None:
            self._previous.close()
        self._previous = self._map  # a row in it may still be amended
        self._map, self._at, self._end = grown
        return True

    def _lose(self, time_us: int) -> None:
        if not self.lost:
            self._lost_since_us = time_us
        self.lost += 1
        self._file.tell_lost(self.lost, self._lost_since_us)


def _claim(path: Path) -> int:
    try:
        path.mkdir(parents=True, exist_ok=True)
        claim = lock.acquire(path)
    except OSError as error:
        raise EpicastError(f"cannot write a journal in {path}: {one_line(error)}") from None
    if claim is None:
        raise EpicastError(f"{path} is being written by another node: choose another folder")
    if any(path.iterdir()):
        lock.release(claim)
        raise EpicastError(f"{path} is not empty: a journal needs a folder of its own")
    return claim


def _clear(path: Path) -> None:
    """So that there may be another attempt."""
    for file in (layout.ROWS_FILE, layout.NAMES_FILE, layout.PICTURES_FILE):
        (path / file).unlink(missing_ok=True)
    temporary(path / layout.WHO_FILE).unlink(missing_ok=True)


def _within(value: int, largest: int) -> int:
    return max(-largest - 1, min(largest, value))


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=str, order="deterministic")
