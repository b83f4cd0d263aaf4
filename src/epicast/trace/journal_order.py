"""The rows of many journals in one order, a window of time after the other: memory does not grow with the run.

Rows are in the order of time. Within a microsecond each process's rows keep their order and are dealt in *rounds*:
every arrival begins a new one, so that a message that arrives in the microsecond in which it was sent comes after its
sending. Within a round they are in the order of the processes' numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from epicast.core.ids import NOBODY
from epicast.core.records import FIRST_KEPT, Kind, Level
from epicast.trace.batch import DTYPES, Batch, Int32s, Int64s, Names
from epicast.trace.journal_lives import Life
from epicast.trace.journal_read import ROWS, Rows, StoredJournal
from epicast.trace.journal_survey import is_of

WINDOW_ROWS = 1 << 19
CHUNK_ROWS_MIN = 256
SENDS_US = 1_000_000
"""How long after the end of the run sendings are kept, in case that the receiver's clock is a little slow: what arrives
must have been sent, but what is sent need not have arrived."""

_ARRIVALS = (Kind.RECEIVE, Kind.DUPLICATE, Kind.DELIVER)
_SENDINGS = (Kind.SEND, Kind.COPY)


def in_order(
    journals: Sequence[StoredJournal], lives: Sequence[Life], names: Names, level: Level, until_us: int
) -> Iterator[Batch]:
    """`names` learns all texts that the rows refer to."""
    total = sum(journal.rows for journal in journals) or 1
    streams = [
        Stream(
            journal,
            life,
            np.array([names.code(text) for text in journal.texts], np.int32),
            FIRST_KEPT[level],
            until_us,
            max(CHUNK_ROWS_MIN, WINDOW_ROWS * journal.rows // total),
        )
        for journal, life in zip(journals, lives, strict=True)
    ]
    streams.sort(key=lambda stream: stream.number)
    while streams := [stream for stream in streams if stream.fill()]:
        # Whoever has more rows on disk is known only up to its last row here.
        before_us = min((stream.last_us for stream in streams if stream.has_more), default=None)
        yield _batch([(stream.number, stream.take(before_us)) for stream in streams])


class Stream:
    """The rows of one journal as they enter the run: in its time and with its codes, those that it lacks put in and
    those after the end left out."""

    def __init__(
        self, journal: StoredJournal, life: Life, codes: Int32s, first_kept: int, until_us: int, chunk_rows: int
    ) -> None:
        self.number = journal.who.number
        self.has_more = True
        self._life, self._codes = life, codes
        self._first_mark, self._until_us, self._chunk_rows = first_kept + 1, until_us, chunk_rows
        self._chunks = journal.chunks(chunk_rows)
        self._rows = self._one(Kind.JOIN, life.joined_us) if life.add_join else np.empty(0, ROWS)

    def fill(self) -> bool:
        """Read on until there is enough for a step; False if there is nothing left. No microsecond may end with what
        is here, unless it is all there is."""
        while self.has_more and not (
            self._chunk_rows < 2 * len(self._rows) and self._rows["time_us"][0] < self.last_us
        ):
            chunk = next(self._chunks, None)
            more = self._end() if chunk is None else self._enter(chunk)
            self._rows = np.concatenate([self._rows, more])
        return len(self._rows) > 0

    @property
    def last_us(self) -> int:
        return int(self._rows["time_us"][-1])

    def take(self, before_us: int | None) -> Rows:
        """The rows before that time, or all."""
        count = len(self._rows) if before_us is None else int(np.searchsorted(self._rows["time_us"], before_us))
        taken, self._rows = self._rows[:count], self._rows[count:]
        return taken

    def _enter(self, chunk: Rows) -> Rows:
        chunk["time_us"] += self._life.shift_us
        for column in ("layer", "detail", "topic"):
            chunk[column] = self._codes[chunk[column]]
        kept = chunk["mark"] >= self._first_mark
        if chunk["time_us"][-1] >= self._until_us:
            kept &= (chunk["time_us"] < self._until_us) | is_of(chunk, _SENDINGS)
            kept &= chunk["time_us"] < self._until_us + SENDS_US
            self.has_more = bool(chunk["time_us"][-1] < self._until_us + SENDS_US)
        return chunk[kept]

    def _end(self) -> Rows:
        self.has_more = False
        life = self._life
        if not life.add_end or life.ended_us is None:
            return np.empty(0, ROWS)
        return self._one(Kind.LEAVE if life.how == "leave" else Kind.CRASH, life.ended_us)

    def _one(self, kind: Kind, time_us: int) -> Rows:
        if kind + 1 < self._first_mark:
            return np.empty(0, ROWS)
        row: Rows = np.zeros(1, ROWS)
        row["time_us"], row["mark"] = time_us, kind + 1
        row["peer"], row["source"], row["seq"] = NOBODY, NOBODY, -1
        return row


def _batch(parts: Sequence[tuple[int, Rows]]) -> Batch:
    """Of streams in the order of their numbers."""
    rows = np.concatenate([part for _, part in parts])
    node = np.concatenate([np.full(len(part), number, np.int64) for number, part in parts])
    rounds = np.concatenate([_rounds(part, number) for number, part in parts])
    order = np.lexsort((rounds, rows["time_us"]))
    columns: dict[str, npt.NDArray[np.integer]] = {name: rows[name] for name in DTYPES if name not in ("kind", "node")}
    columns |= {"kind": rows["mark"] - 1, "node": node}
    return Batch(**{name: columns[name][order].astype(dtype) for name, dtype in DTYPES.items()})


def _rounds(rows: Rows, number: int) -> Int64s:
    """How many arrivals each row has before it in its microsecond, itself included."""
    if not len(rows):
        return np.empty(0, np.int64)
    arrived = np.cumsum(is_of(rows, _ARRIVALS) & (rows["peer"] != number))
    first = np.concatenate([[True], rows["time_us"][1:] != rows["time_us"][:-1]])
    starts = np.flatnonzero(first)
    before = np.concatenate([[0], arrived])[starts]
    rounds: Int64s = arrived - np.repeat(before, np.diff(np.append(starts, len(rows))))
    return rounds
