"""Results made by hand, for tests of what experiments make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np

from epicast.pipeline.confidence import Stat, stat
from epicast.pipeline.results import Distribution, Floats, Results


class MadeResults:
    """Points from axes and their labels; numbers are given for all points that have certain labels."""

    def __init__(self, **axes: Iterable[object]) -> None:
        names, values = list(axes), [[str(value) for value in axis] for axis in axes.values()]
        self.points = [dict(zip(names, labels, strict=True)) for labels in product(*values)]
        self.stats: dict[tuple[int, str], Stat] = {}
        self.distributions: dict[tuple[int, str], Distribution] = {}
        self.lines: dict[tuple[int, str], tuple[Floats, Floats]] = {}

    def give(self, metric: str, *seeds: float, **labels: object) -> MadeResults:
        self.stats |= {(point, metric): stat(seeds) for point in self._find(labels)}
        return self

    def spread(self, name: str, counts: Mapping[float, float], **labels: object) -> MadeResults:
        values, times = np.array(sorted(counts.items()), np.float64).T
        self.distributions |= {(point, name): Distribution(values, times) for point in self._find(labels)}
        return self

    def over_time(self, name: str, values: Mapping[float, float], **labels: object) -> MadeResults:
        times, heights = np.array(sorted(values.items()), np.float64).T
        self.lines |= {(point, name): (times, heights) for point in self._find(labels)}
        return self

    def without(self, metric: str, **labels: object) -> MadeResults:
        for point in self._find(labels):
            del self.stats[point, metric]
        return self

    def results(self) -> Results:
        return Results(self.points, self.stats, self.distributions, self.lines, [], [])

    def _find(self, labels: Mapping[str, object]) -> list[int]:
        wanted = {axis: str(label) for axis, label in labels.items()}
        found = [number for number, point in enumerate(self.points) if wanted.items() <= point.items()]
        assert found, f"no point has {wanted}"
        return found
