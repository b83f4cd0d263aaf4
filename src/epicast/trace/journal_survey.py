"""A first look at every journal: what must be known of all of them before their rows can be put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from epicast.core.ids import NOBODY
from epicast.core.records import Kind
from epicast.trace.batch import Int64s
from epicast.trace.journal_read import Rows, StoredJournal

_ARRIVES = (Kind.RECEIVE, Kind.DUPLICATE)
_BEGINS = (Kind.PUBLISH, Kind.DELIVER, Kind.JOIN, Kind.SUBSCRIBE)
_GOODBYES = (Kind.UNSUBSCRIBE, Kind.LEAVE)
_ENDS = (Kind.LEAVE, Kind.CRASH)
_NONE: Int64s = np.empty(0, np.int64)


@dataclass
class Survey:
    """Of one journal, in the time of its own clock."""

    journal: StoredJournal
    first_us: int | None = None
    last_us: int | None = None
    joined_us: int | None = None  # of its row, as is the next
    ended: tuple[int, str] | None = None
    active_us: int | None = None  # when it last published, delivered, joined or subscribed
    goodbyes_us: Int64s = field(default_factory=lambda: _NONE)
    parents_us: Int64s = field(default_factory=lambda: _NONE)  # when it changed a parent
    posts: tuple[Int64s, Int64s] = field(default_factory=lambda: (_NONE, _NONE))  # numbers of messages, and when
    partners: set[int] = field(default_factory=set)  # processes from whom it got something

    @property
    def number(self) -> int:
        return self.journal.who.number

    @property
    def starts_us(self) -> int | None:
        """The first that is known of it; None of a process that was killed before it wrote anything."""
        known = [us for us in (self.first_us, self.journal.who.started_us) if us is not None]
        return min(known, default=None)


def survey(journal: StoredJournal) -> Survey:
    found = Survey(journal)
    goodbyes, parents, seqs, times = [_NONE], [_NONE], [_NONE], [_NONE]
    for rows in journal.chunks():
        found.first_us = int(rows["time_us"][0]) if found.first_us is None else found.first_us
        found.last_us = int(rows["time_us"][-1])
        _note_ends(found, rows)
        if len(active := times_of(rows, _BEGINS)):
            found.active_us = int(active[-1])
        goodbyes.append(times_of(rows, _GOODBYES))
        parents.append(times_of(rows, (Kind.PARENT,)))
        published = is_of(rows, (Kind.PUBLISH,))
        seqs.append(rows["seq"][published].astype(np.int64))
        times.append(rows["time_us"][published].astype(np.int64))
        found.partners |= _partners(rows)
    found.goodbyes_us, found.parents_us = np.concatenate(goodbyes), np.concatenate(parents)
    found.posts = np.concatenate(seqs), np.concatenate(times)
    return found


def is_of(rows: Rows, kinds: Sequence[Kind]) -> np.typing.NDArray[np.bool_]:
    return np.isin(rows["mark"], [kind + 1 for kind in kinds])


def times_of(rows: Rows, kinds: Sequence[Kind]) -> Int64s:
    times: Int64s = rows["time_us"][is_of(rows, kinds)].astype(np.int64)
    return times


def _note_ends(found: Survey, rows: Rows) -> None:
    if found.joined_us is None and len(joined := times_of(rows, (Kind.JOIN,))):
        found.joined_us = int(joined[0])
    at = np.flatnonzero(is_of(rows, _ENDS))
    if found.ended is None and len(at):
        row = rows[at[0]]
        found.ended = (int(row["time_us"]), Kind(int(row["mark"]) - 1).name.lower())


def _partners(rows: Rows) -> set[int]:
    peers = np.unique(rows["peer"][is_of(rows, _ARRIVES)]).tolist()
    sources = np.unique(rows["source"][is_of(rows, (Kind.DELIVER,))]).tolist()
    return {*peers, *sources} - {NOBODY}
