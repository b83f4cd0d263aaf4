"""Clocks that disagree: nobody delivers a message before it was published.

Each process stamps its rows with its own clock, which is off by a constant. Where a message seems to arrive before it
was sent on its way, the clock of the receiver is put forward by what is missing, and with it the clocks of those who
heard from that one too early then. This gives the least shifts with which all is in order. There are none if the clocks
contradict each other; then all are left as they are, and the checks will show what is out of order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from epicast.core.records import Kind
from epicast.trace.batch import Int64s
from epicast.trace.journal_read import Rows
from epicast.trace.journal_survey import Survey, is_of

TRAVEL_US_MIN = 1
"""A delivery is at least so much later than the publication by another process: their order is no matter of luck."""

Lags = Mapping[tuple[int, int], int]
"""By publisher and receiver: the shortest time from publication to delivery, where it is less than TRAVEL_US_MIN."""


def shifts(surveys: Sequence[Survey]) -> dict[int, int]:
    """By process: microseconds to add to its times."""
    numbers = [each.number for each in surveys]
    return solved(numbers, lags(surveys)) or dict.fromkeys(numbers, 0)


def lags(surveys: Sequence[Survey]) -> Lags:
    posts = {each.number: _sorted(*each.posts) for each in surveys if len(each.posts[0])}
    found: dict[tuple[int, int], int] = {}
    for each in surveys:
        me = each.number
        for rows in each.journal.chunks():
            for source, lag_us in _lags_in(rows, me, posts):
                if lag_us < found.get((source, me), TRAVEL_US_MIN):
                    found[source, me] = lag_us
    return found


def solved(numbers: Sequence[int], lags_us: Lags) -> dict[int, int] | None:
    """The least shifts, or None if there are none."""
    shift_us = dict.fromkeys(numbers, 0)
    for _ in range(len(numbers) + 1):
        changed = False
        for (source, receiver), lag_us in lags_us.items():
            needed_us = shift_us[source] + TRAVEL_US_MIN - lag_us
            if needed_us > shift_us[receiver]:
                shift_us[receiver], changed = needed_us, True
        if not changed:
            return shift_us
    return None


def _lags_in(rows: Rows, me: int, posts: Mapping[int, tuple[Int64s, Int64s]]) -> Iterator[tuple[int, int]]:
    delivered = rows[is_of(rows, (Kind.DELIVER,))]
    sources = delivered["source"]
    for source in np.unique(sources).tolist():
        if source == me or source not in posts:
            continue
        seqs, published_us = posts[source]
        mine = delivered[sources == source]
        at = np.minimum(np.searchsorted(seqs, mine["seq"]), len(seqs) - 1)
        known = seqs[at] == mine["seq"]
        if known.any():
            yield source, int((mine["time_us"][known] - published_us[at[known]]).min())


def _sorted(seqs: Int64s, times_us: Int64s) -> tuple[Int64s, Int64s]:
    order = np.argsort(seqs, kind="stable")
    return seqs[order], times_us[order]
