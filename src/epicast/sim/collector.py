"""Watches the rows of a run go by and keeps what its summary needs: per message, per process, never per row.

A pair (message, process) is *owed* if the process was up from the publication to the end of the run. Which pairs came
to be delivered is kept as bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epicast.core.ids import NOBODY
from epicast.core.records import Kind
from epicast.sim.bit_table import BitTable, pack, positions
from epicast.sim.histogram import Histogram
from epicast.sim.population import Population
from epicast.trace.batch import Batch, Int64s, Names, UInt8s

_UNKNOWN = -1


class Collector:
    def __init__(self, names: Names, population: Population) -> None:
        self.names, self.population = names, population
        self.latency_us = Histogram()  # of deliveries by all but the publisher
        self.hops = Histogram()
        self.deliveries = 0
        self.own_deliveries = 0
        self.strays = 0  # deliveries of what nobody published
        self.repairs: dict[str, int] = {}  # by sort
        self.parents_lost = 0
        self._number: dict[tuple[int, int], int] = {}  # (source, seq) -> number of the message
        self._ids: list[tuple[int, int]] = []  # by number
        self._published_us: list[int] = []
        self._delivered = BitTable()  # a row per message, a column per process
        self._pending: list[int] = []  # messages of which some owed pair lacks, as far as we know

    def take(self, batch: Batch) -> None:
        kind = batch.kind
        self._take_publications(batch, np.flatnonzero(kind == Kind.PUBLISH))
        self._take_deliveries(batch, np.flatnonzero(kind == Kind.DELIVER))
        self.parents_lost += int(np.count_nonzero((kind == Kind.PARENT) & (batch.peer == NOBODY)))
        sorts, counts = np.unique(batch.detail[kind == Kind.REPAIR], return_counts=True)
        for sort, count in zip(sorts.tolist(), counts.tolist(), strict=True):
            self.repairs[self.names[sort]] = self.repairs.get(self.names[sort], 0) + count

    def _take_publications(self, batch: Batch, rows: Int64s) -> None:
        sources, seqs = batch.source[rows].tolist(), batch.seq[rows].tolist()
        for source, seq, time_us in zip(sources, seqs, batch.time_us[rows].tolist(), strict=True):
            number = len(self._ids)
            assert self._number.setdefault((source, seq), number) == number, f"({source}, {seq}) published twice"
            self._ids.append((source, seq))
            self._published_us.append(time_us)
            self._pending.append(number)

    def _take_deliveries(self, batch: Batch, rows: Int64s) -> None:
        if not len(rows):
            return
        node, source = batch.node[rows], batch.source[rows]
        number = self._numbers(source, batch.seq[rows])
        known, others = number != _UNKNOWN, node != source
        self.deliveries += len(rows)
        self.own_deliveries += int(np.count_nonzero(~others))
        self.strays += int(np.count_nonzero(~known))
        self._delivered.set(number[known], node[known])
        self._measure(batch, rows[known & others], number[known & others])

    def _numbers(self, source: Int64s, seq: Int64s) -> Int64s:
        """The number of each row's message; each message is looked up once."""
        seqs, which = np.unique(seq, return_inverse=True)
        _, first, place = np.unique(source * len(seqs) + which, return_index=True, return_inverse=True)
        ids = zip(source[first].tolist(), seq[first].tolist(), strict=True)
        return np.array([self._number.get(key, _UNKNOWN) for key in ids], np.int64)[place]

    def _measure(self, batch: Batch, rows: Int64s, number: Int64s) -> None:
        """What a process that joined later catches up on tells nothing about how fast messages travel."""
        published_us = np.array(self._published_us, np.int64)[number]
        present = np.array(self.population.joined_us, np.int64)[batch.node[rows]] <= published_us
        self.latency_us.add((batch.time_us[rows] - published_us)[present])
        self.hops.add(batch.hops[rows][present].astype(np.int64))

    # Who owes what to whom

    @property
    def messages(self) -> int:
        return len(self._ids)

    def repeated(self) -> int:
        """Deliveries of what the process had delivered before."""
        return self.deliveries - self.strays - self._delivered.count()

    def all_delivered(self) -> bool:
        """Does every process that is up have all that was published since it joined?"""
        # Processes that join later owe nothing for the past, so a message that is done stays done.
        lacking = (number for number, *_, missing in self._duties(self._pending) if missing.any())
        first = next(lacking, None)
        self._pending = [] if first is None else self._pending[self._pending.index(first) :]
        return first is None

    def owed_and_missing(self) -> tuple[int, int]:
        """Pairs, if the run ended now."""
        owed_count = missing_count = 0
        for _, owed, missing in self._duties(range(self.messages)):
            owed_count += int(np.bitwise_count(owed).sum(dtype=np.int64))
            missing_count += int(np.bitwise_count(missing).sum(dtype=np.int64))
        return owed_count, missing_count

    def holes(self, limit: int) -> list[tuple[int, int, int]]:
        """Some of the missing pairs: source and number of the message, process."""
        found: list[tuple[int, int, int]] = []
        for number, _, missing in self._duties(range(self.messages)):
            found += [(*self._ids[number], node) for node in positions(missing).tolist()]
            if len(found) >= limit:
                break
        return found[:limit]

    def _duties(self, numbers: list[int] | range) -> Iterator[tuple[int, UInt8s, UInt8s]]:
        """Of each message, which processes are owed it and which of those lack it, as bits."""
        up, before = self.population.up_mask(), -1
        published_us = np.array(self._published_us, np.int64)[np.asarray(numbers, np.int64)]
        owed = np.empty(0, np.uint8)
        for number, joined in zip(numbers, self.population.joined_by(published_us).tolist(), strict=True):
            if joined != before:
                owed, before = pack(up[:joined]), joined
            yield number, owed, owed & ~self._delivered.row(number, len(owed))
