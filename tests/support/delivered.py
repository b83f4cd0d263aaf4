"""What every process of a simulated run delivered, in its order, and what is wrong with it: small and independent of
the checkers of the pipeline, which are too slow for thousands of runs."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from epicast.core.records import Kind
from epicast.sim.world import World
from epicast.trace.batch import Batch

Id = tuple[int, int]  # source, number


class Delivered:
    """Watches a world from its beginning."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.order: dict[int, list[Id]] = defaultdict(list)  # by process
        self.published: dict[int, list[Id]] = defaultdict(list)
        self.topics: dict[Id, int] = {}
        world.sinks.append(self._take)

    def _take(self, batch: Batch) -> None:
        for kind, into in ((Kind.PUBLISH, self.published), (Kind.DELIVER, self.order)):
            rows = np.flatnonzero(batch.kind == kind)
            columns = (batch.node, batch.source, batch.seq, batch.topic)
            for node, source, seq, topic in zip(*(column[rows].tolist() for column in columns), strict=True):
                into[node].append((source, seq))
                self.topics[source, seq] = topic

    def twice(self) -> list[tuple[int, Id]]:
        return [(node, each) for node, got in self.order.items() for each in set(got) if got.count(each) > 1]

    def strays(self) -> list[tuple[int, Id]]:
        known = {each for sent in self.published.values() for each in sent}
        return [(node, each) for node, got in self.order.items() for each in got if each not in known]

    def own_lost(self) -> list[tuple[int, Id]]:
        """Of processes that are up."""
        return [
            (node, each) for node in self.world.up for each in self.published[node] if each not in set(self.order[node])
        ]

    def knotted(self, *, across_topics: bool = False) -> list[Id]:
        """Messages that no single order of their topic (or of all topics) has room for: what is left when all that
        nobody delivered after another one that is left is taken away, again and again."""
        followers: dict[Id, set[Id]] = defaultdict(set)
        before: dict[Id, int] = defaultdict(int)
        for got in self.order.values():
            by_topic: dict[int, list[Id]] = defaultdict(list)
            for each in got:
                by_topic[0 if across_topics else self.topics[each]].append(each)
            for line in by_topic.values():
                for one, next_one in pairwise(line):
                    if next_one not in followers[one]:
                        followers[one].add(next_one)
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
        return [] if placed == len(self.topics) else sorted(each for each in self.topics if before[each] > 0)

    def holes(self) -> int:
        """Pairs of a message that somebody delivered and a process, up to the end and there when it was published, that
        did not."""
        self.world.engine.flush()
        _, missing = self.world.collector.owed_and_missing()
        return missing
