"""A random overlay, and the trees of shortest ways in it: as numbers of processes, without any protocol."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epicast.trace.batch import Int64s

TICK_US = 100
DELAY_MIN_US, DELAY_MAX_US, JITTER_US = 10_000, 100_000, 5_000

Links = tuple[Int64s, Int64s]


def random_links(nodes: int, rng: np.random.Generator) -> Links:
    """From and to of every directed link. A ring, which keeps it connected, and one more random link of each process;
    all links go both ways."""
    here = np.arange(nodes)
    ring, other = (here + 1) % nodes, (here + rng.integers(1, nodes, nodes)) % nodes
    tails, heads = np.concatenate([here, here, ring, other]), np.concatenate([ring, other, here, here])
    known = np.unique(tails * nodes + heads)
    return known // nodes, known % nodes


def delays(shape: int | tuple[int, ...], rng: np.random.Generator) -> Int64s:
    return on_ticks(rng.integers(DELAY_MIN_US, DELAY_MAX_US, shape))


def on_ticks(times_us: Int64s) -> Int64s:
    return times_us // TICK_US * TICK_US


class Flow:
    """The tree of one source. A parent is a neighbour that is one link nearer to the source, so it may change at any
    time without a cycle."""

    def __init__(self, source: int, nodes: int, links: Links, rng: np.random.Generator) -> None:
        self.source, self.links, self.rng = source, links, rng
        self.published = 0
        self.depth = _distances(source, nodes, links)
        self.others = np.flatnonzero(self.depth > 0)
        self.parent = self._chosen()
        self._delay = delays(nodes, rng)  # of the way from the parent
        self._levels = [np.flatnonzero(self.depth == depth) for depth in range(1, int(self.depth.max()) + 1)]

    def latencies(self, messages: int) -> Int64s:
        """One row for each process, one column for each message."""
        found = np.zeros((len(self.depth), messages), np.int64)
        for level in self._levels:
            jitter = on_ticks(self.rng.integers(0, JITTER_US, (len(level), messages)))
            found[level] = found[self.parent[level]] + self._delay[level, None] + jitter
        return found

    def change(self, share: float) -> Int64s:
        """Some processes choose again; those that now have another parent."""
        chosen = np.where(self.rng.random(len(self.parent)) < share, self._chosen(), self.parent)
        changed = np.flatnonzero(chosen != self.parent)
        self.parent = chosen
        return changed

    def _chosen(self) -> Int64s:
        """A random neighbour that is nearer to the source, for each process; the source has itself."""
        tails, heads = self.links
        nearer = self.rng.permutation(np.flatnonzero(self.depth[heads] < self.depth[tails]))
        chosen = np.full(len(self.depth), self.source)
        chosen[tails[nearer]] = heads[nearer]
        return chosen


def _distances(source: int, nodes: int, links: Links) -> npt.NDArray[np.int64]:
    tails, heads = links
    depth = np.full(nodes, -1)
    depth[source] = reached = 0
    while (depth < 0).any():
        depth[heads[(depth[tails] == reached) & (depth[heads] < 0)]] = reached + 1
        reached += 1
    return depth
