"""What measuring a run gives, and the bounds that keep it small whatever the size of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Histogram = list[tuple[str, float, int]]
Series = list[tuple[str, float, float]]

SERIES_POINTS_MAX = 600
LAYERS = ("membership", "topics", "dissemination", "ordering")
"""The roles that send messages; what any other sends counts as OTHER."""
OTHER = "other"


@dataclass(frozen=True)
class Measures:
    metrics: dict[str, float] = field(default_factory=dict)
    """By name. A number that does not exist, such as the latency of a run without messages, is left out."""
    histograms: Histogram = field(default_factory=list)
    """Name, value and how often it occurs."""
    series: Series = field(default_factory=list)
    """Name, seconds since the first publication (since the start, if there is none) and value."""

    def __add__(self, other: Measures) -> Measures:
        return Measures(self.metrics | other.metrics, self.histograms + other.histograms, self.series + other.series)

    def sound(self) -> Measures:
        """Itself in a fixed order, once it is sure that everything in it is a number."""
        numbers = [*self.metrics.values(), *(x for _, *xs in self.histograms + self.series for x in xs)]
        assert all(math.isfinite(number) for number in numbers), "a metric is no number"
        metrics = {name: float(value) for name, value in sorted(self.metrics.items())}
        return Measures(metrics, sorted(self.histograms), sorted(self.series))


def ratio(name: str, part: float, whole: float) -> dict[str, float]:
    """Nothing where there is nothing to divide by."""
    return {name: part / whole} if whole else {}


def layer_name(layer: str) -> str:
    return layer if layer in LAYERS else OTHER


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Evenly chosen points, the last among them, where there are too many."""
    every = -(-len(points) // SERIES_POINTS_MAX)
    return points[::-1][:: max(1, every)][::-1]
