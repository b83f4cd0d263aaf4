"""Pictures of whole overlays, put together from what single processes saw of them.

Processes that take pictures at the same times (say, at full seconds) give pictures of the whole at those times, where
everyone that was up has taken part. The *final* picture is made of the last one of each process that was up to the end
of the run, and has the time of the latest of these. Half a picture would show processes without parents that have one:
none is better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from epicast.trace.batch import Int64s
from epicast.trace.journal_lives import Life
from epicast.trace.journal_read import StoredJournal
from epicast.trace.journal_survey import Survey
from epicast.trace.tables import Snapshot

AGE_US_MAX = 10_000_000
"""An older part of the final picture counts only if its process has changed no parent since. Checks of trees allow for
changes that are not older."""


class Seen(NamedTuple):
    """A process, with the pictures that it took before the run was over."""

    journal: StoredJournal
    life: Life
    places: Mapping[int, tuple[int, int]]  # by the time of its own clock
    parents_us: Int64s  # as these

    @property
    def up_to_end(self) -> bool:
        return self.life.ended_us is None


def seen(surveys: Sequence[Survey], lives: Sequence[Life], until_us: int) -> list[Seen]:
    found = []
    for each, life in zip(surveys, lives, strict=True):
        own_until_us = until_us - life.shift_us
        places = {at: place for at, place in each.journal.moments().items() if at < own_until_us}
        found.append(Seen(each.journal, life, places, each.parents_us[each.parents_us < own_until_us]))
    return found


def pictures(processes: Sequence[Seen]) -> Iterator[Snapshot]:
    """In the order of time."""
    numbers = {each.journal.who.node_id: each.journal.who.number for each in processes}
    for time_us, parts in sorted(_moments(processes).items()):
        yield from _together(time_us, parts, numbers)


Parts = list[tuple[StoredJournal, tuple[int, int]]]


def _moments(processes: Sequence[Seen]) -> dict[int, Parts]:
    """Whole pictures, by the time of the run."""
    found: dict[int, Parts] = {}
    for own_us in sorted({at for each in processes for at in each.places}):
        there = [each for each in processes if own_us in each.places]
        at_us = max(own_us + each.life.shift_us for each in there)
        up = [each for each in processes if each.life.is_up(at_us)]
        if all(own_us in each.places for each in up):
            found[at_us] = [(each.journal, each.places[own_us]) for each in up]
    final = _final(processes)
    return found if final is None else found | {final[0]: final[1]}


def _final(processes: Sequence[Seen]) -> tuple[int, Parts] | None:
    up = [each for each in processes if each.up_to_end]
    if not up or not all(each.places for each in up):
        return None
    last = [max(each.places) for each in up]
    at_us = max(own_us + each.life.shift_us for each, own_us in zip(up, last, strict=True))
    for each, own_us in zip(up, last, strict=True):
        moved = len(each.parents_us) > 0 and int(each.parents_us[-1]) > own_us
        if moved and at_us - (own_us + each.life.shift_us) > AGE_US_MAX:
            return None
    return at_us, [(each.journal, each.places[own_us]) for each, own_us in zip(up, last, strict=True)]


def _together(time_us: int, parts: Parts, numbers: Mapping[str, int]) -> Iterator[Snapshot]:
    """One for each overlay and flow that anybody speaks of."""
    edges: dict[tuple[str, str], list[tuple[int, Int64s, Int64s]]] = {}
    for journal, place in parts:
        for picture in journal.pictures(place):
            key = picture.overlay, _flow(picture.flow, numbers)
            edges.setdefault(key, []).append((journal.who.number, picture.peer, picture.value))
    for (overlay, flow), known in sorted(edges.items()):
        node = np.concatenate([np.full(len(peer), number, np.int64) for number, peer, _ in known])
        peer, value = (np.concatenate([each[at] for each in known]) for at in (1, 2))
        yield Snapshot(time_us, overlay, flow, node, peer, value)


def _flow(text: str, numbers: Mapping[str, int]) -> str:
    """A flow is called by the number of its source, which journals may call by its name."""
    source, slash, flow = text.rpartition("/")
    return f"{numbers[source]}/{flow}" if slash and source in numbers else text
