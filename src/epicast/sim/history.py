"""What every process of a run delivered and told as lost, in its order, judged row by row: exact, and independent
of the checkers of the pipeline, which are too slow for thousands of runs.

Causality is recomputed from the rows: what a publisher had delivered or published comes before its next message. A set
of messages is a whole number, a bit for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from epicast.core.records import Kind
from epicast.sim.world import World
from epicast.stacks.stack import Stack
from epicast.trace.batch import Batch

STREAM_BITS = 40  # of a number are those within its flow
Id = tuple[int, int]  # source, number
KINDS = tuple(map(int, (Kind.PUBLISH, Kind.DELIVER, Kind.GAP)))
SHOWN = 5


def _counts_alone(stack: Stack) -> bool:
    """Does a range of lost messages tell how many they are, not which? Causal orders number what a source publishes on
    all topics, BRISA what it publishes on each."""
    return (
        stack.ordering is not None and stack.ordering.protocol == "causal" and stack.dissemination.protocol == "brisa"
    )


class History:
    """Watches a world from its beginning."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.published_us: dict[Id, int] = {}
        self.last_us: dict[Id, int] = {}  # when it was delivered for the last time anywhere
        self.topics: dict[Id, int] = {}
        self.got: dict[int, dict[Id, None]] = defaultdict(dict)  # by process, in its order
        self.told: dict[int, dict[Id, int]] = defaultdict(dict)  # and when
        self.came: dict[int, dict[Id, None]] = defaultdict(dict)  # those of them that came, and were not delivered
        self.vague: dict[int, dict[int, int]] = defaultdict(dict)  # how many of a source, no one says which
        self.wrong: list[str] = []  # what was seen as it happened
        self._bits: dict[Id, int] = {}
        self._past: dict[Id, int] = {}
        self._known: dict[int, int] = defaultdict(int)  # by process: what it delivered, and all that comes before
        self._inverted: list[str] = []
        self._counts_alone = _counts_alone(world.stack)
        self._in_turn = "causal" in world.stack.promises
        world.sinks.append(self._take)

    def _take(self, batch: Batch) -> None:
        rows = np.flatnonzero(np.isin(batch.kind, KINDS))
        names = self.world.names
        columns = (batch.time_us, batch.kind, batch.node, batch.source, batch.seq, batch.topic, batch.detail)
        for time_us, kind, node, source, seq, topic, detail in zip(*(c[rows].tolist() for c in columns), strict=True):
            if kind == Kind.PUBLISH:
                self._publish(time_us, node, (source, seq), topic)
            elif kind == Kind.DELIVER:
                self._deliver(time_us, node, (source, seq))
            else:
                self._tell(time_us, node, source, seq, names[detail])

    def _publish(self, time_us: int, node: int, message: Id, topic: int) -> None:
        self.published_us[message], self.topics[message] = time_us, topic
        self._bits[message] = bit = 1 << len(self._bits)
        self._past[message] = self._known[node]
        self._known[node] |= bit

    def _deliver(self, time_us: int, node: int, message: Id) -> None:
        if message not in self.published_us:
            self.wrong.append(f"node {node} delivered {message}, which nobody published")
            return
        if message in self.got[node]:
            self.wrong.append(f"node {node} delivered {message} again")
        if message in self.told[node]:
            self.wrong.append(f"node {node} delivered {message}, which it had told as lost")
        self.got[node][message] = None
        self.last_us[message] = time_us
        bit, known = self._bits[message], self._known[node]
        if known & bit and message[0] != node:
            self._inverted.append(f"node {node} delivered {message} after something that follows it")
        self._known[node] = known | bit | self._past[message]

    def _tell(self, time_us: int, node: int, source: int, seq: int, detail: str) -> None:
        count, _, why = detail.partition(" ")
        if seq < 0 or (why == "lost" and self._counts_alone):
            self.vague[node][source] = self.vague[node].get(source, 0) + int(count)
            return
        lost = range(seq - int(count), seq) if why == "lost" else range(seq, seq + 1)
        for number in lost:
            self.told[node].setdefault((source, number), time_us)
        if why != "lost":
            self.came[node][source, seq] = None

    def follows(self, message: Id) -> list[Id]:
        """The messages of other publishers that come before it."""
        past, source = self._past[message], message[0]
        return [each for each, bit in self._bits.items() if past & bit and each[0] != source]

    # Judgement

    def silent(self, duty_us: Callable[[int], int]) -> list[str]:
        """Messages that a process is owed and neither has nor has told as lost. `duty_us`: from when on it is owed
        everything."""
        return list(self._silent(duty_us))

    def missing(self, duty_us: Callable[[int], int]) -> list[str]:
        """Messages that a process is owed and has not got, told or not."""
        return [
            f"node {node} has not got message {message}"
            for node in self.world.up
            for message, time_us in self.published_us.items()
            if time_us >= duty_us(node) and message not in self.got[node]
        ]

    def _silent(self, duty_us: Callable[[int], int]) -> Iterator[str]:
        for node in self.world.up:
            since_us, got, told = duty_us(node), self.got[node], self.told[node]
            vague = dict(self.vague[node])
            for message, time_us in self.published_us.items():
                if time_us < since_us or message in got or message in told:
                    continue
                if vague.get(message[0], 0) > 0:
                    vague[message[0]] -= 1
                else:
                    yield f"node {node} has not got message {message} and does not say so"

    def own_lost(self) -> list[str]:
        """Publishers that are up and have not delivered what they published."""
        up = frozenset(self.world.up)
        lost = [id_ for id_ in self.published_us if id_[0] in up and id_ not in self.got[id_[0]]]
        return [f"node {message[0]} has not delivered its own message {message}" for message in lost]

    def holes(self) -> int:
        """Pairs of a message and a process that was up from its publication to now and has not delivered it."""
        joined_us = self.world.population.joined_us
        return sum(
            1
            for node in self.world.up
            for message, time_us in self.published_us.items()
            if time_us >= joined_us[node] and message not in self.got[node]
        )

    def false_gaps(self) -> list[str]:
        """Told as lost, and delivered; or never published; or neither owed nor come."""
        return [*self._false_names(), *self._false_counts()]

    def _false_names(self) -> Iterator[str]:
        for node, told in self.told.items():
            for message in told:
                if message in self.got[node]:
                    yield f"node {node} told {message} as lost, and delivered it"
                elif message not in self.published_us:
                    yield f"node {node} told {message} as lost, which nobody published"
                elif message not in self.came[node] and not self._is_owed(node, message):
                    yield f"node {node} told {message} as lost, which was published before it came up"

    def _is_owed(self, node: int, message: Id) -> bool:
        """A process may miss what was published or on its way to others after it came up, and what follows anything of
        the same source that it got. In an order that takes a source's messages in turn, what follows one that others
        delivered after it came up was still on its way then, too."""
        joined_us = self.world.population.joined_us[node]
        if self._is_after(joined_us, message):
            return True
        source, number = message
        stream = number >> STREAM_BITS
        if self._in_turn:
            before = range(stream << STREAM_BITS, number)
            if any(self._is_after(joined_us, (source, each)) for each in before if (source, each) in self.published_us):
                return True
        came = (*self.got[node], *self.came[node])
        return any(s == source and n >> STREAM_BITS == stream and n < number for s, n in came)

    def _is_after(self, us: int, message: Id) -> bool:
        return max(self.published_us[message], self.last_us.get(message, 0)) >= us

    def _false_counts(self) -> Iterator[str]:
        """More than are owed and not delivered. Another layer may have told the same ones by their numbers."""
        for node, counts in self.vague.items():
            got, came = self.got[node], self.came[node]
            for source, count in counts.items():
                lacking = [each for each in self.published_us if each[0] == source and each not in got]
                left = sum(1 for each in lacking if each in came or self._is_owed(node, each))
                if count > left:
                    yield f"node {node} told {count} messages of {source} as lost, and can lack {left}"

    def inversions(self, order: str) -> list[str]:
        if order == "fifo":
            return list(self._out_of_line())
        if order == "causal":
            return self._inverted
        return [f"messages {self.knotted()[:SHOWN]} have no place in one order"] if self.knotted() else []

    def _out_of_line(self) -> Iterator[str]:
        for node, got in self.got.items():
            last: dict[tuple[int, int], int] = {}
            for source, seq in got:
                line = source, self.topics[source, seq]
                if seq < last.get(line, -1):
                    yield f"node {node} delivered {(source, seq)} after {(source, last[line])}"
                last[line] = max(seq, last.get(line, -1))

    def knotted(self) -> list[Id]:
        """Messages that no single order of their topic has room for: what is left when all that nobody delivered after
        another one that is left is taken away, again and again."""
        followers: dict[Id, dict[Id, None]] = defaultdict(dict)
        before: dict[Id, int] = defaultdict(int)
        for got in self.got.values():
            by_topic: dict[int, list[Id]] = defaultdict(list)
            for each in got:
                by_topic[self.topics[each]].append(each)
            for line in by_topic.values():
                for one, next_one in pairwise(line):
                    if next_one not in followers[one]:
                        followers[one][next_one] = None
                        before[next_one] += 1
        free = [each for each in self.topics if not before[each]]
        placed = 0
        while free:
            each = free.pop()
            placed += 1
            for follower in followers[each]:
                before[follower] -= 1
                if not before[follower]:
                    free.append(follower)
        return [] if placed == len(self.topics) else [each for each in self.topics if before[each] > 0]
