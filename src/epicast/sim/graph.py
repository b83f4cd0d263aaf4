"""Random graphs for overlays that are given, not built: who is whose neighbour."""

from __future__ import annotations

from random import Random

from epicast.core.errors import ConfigError

Neighbours = list[list[int]]
"""Of each process, by its number."""


def directed(nodes: int, degree: int, rng: Random) -> Neighbours:
    """Everyone knows `degree` others (all of them, where there are fewer), drawn uniformly."""
    degree = min(degree, nodes - 1)
    drawn = (rng.sample(range(nodes), degree + 1) for _ in range(nodes))
    return [[peer for peer in peers if peer != me][:degree] for me, peers in enumerate(drawn)]


def symmetric(nodes: int, degree: int, rng: Random) -> Neighbours:
    """A random regular graph: everyone has `degree` neighbours (all others, where there are fewer), on both sides."""
    degree = min(degree, nodes - 1)
    if nodes * degree % 2:
        raise ConfigError(f"a symmetric graph needs an even nodes * degree, got {nodes} * {degree}")
    if 2 * degree > nodes - 1:  # dense: draw the edges that are left out instead
        absent = symmetric(nodes, nodes - 1 - degree, rng)
        return [[peer for peer in range(nodes) if peer != me and peer not in absent[me]] for me in range(nodes)]
    while True:
        edges = _Edges(nodes, degree, rng)
        if edges.place_the_rest(rng):
            return [list(peers) for peers in edges.of]


class _Edges:
    """Everyone has `degree` ends, paired at random. Pairs that would be a loop or a double edge are kept aside, then
    find their place by switching with others."""

    def __init__(self, nodes: int, degree: int, rng: Random) -> None:
        self.of: list[dict[int, None]] = [{} for _ in range(nodes)]
        self.all: list[tuple[int, int]] = []
        self.rest: list[tuple[int, int]] = []
        ends = [node for node in range(nodes) for _ in range(degree)]
        rng.shuffle(ends)
        for a, b in zip(ends[::2], ends[1::2], strict=True):
            if self._fits(a, b):
                self._add(a, b)
            else:
                self.rest.append((a, b))

    def place_the_rest(self, rng: Random) -> bool:
        """(a, b) with an edge (c, d) becomes (a, c) and (b, d): all keep their degrees. False if that gets stuck."""
        for _ in range(100 * (len(self.rest) + 1)):
            if not (self.rest and self.all):
                break
            a, b = self.rest[-1]
            at = rng.randrange(len(self.all))
            c, d = self.all[at]
            if self._fits(a, c) and self._fits(b, d) and (a, b) != (d, c):
                self._remove(at)
                self._add(a, c)
                self._add(b, d)
                self.rest.pop()
        return not self.rest

    def _fits(self, a: int, b: int) -> bool:
        return a != b and b not in self.of[a]

    def _add(self, a: int, b: int) -> None:
        self.of[a][b] = self.of[b][a] = None
        self.all.append((a, b))

    def _remove(self, at: int) -> None:
        a, b = self.all[at]
        del self.of[a][b], self.of[b][a]
        self.all[at] = self.all[-1]
        self.all.pop()
