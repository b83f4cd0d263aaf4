"""What the experiments about CLON have in common: the names of their overlays, and their arithmetic."""

from __future__ import annotations

from epicast.experiments.claims import stat
from epicast.pipeline.confidence import Stat
from epicast.pipeline.results import Results

OVERLAYS = {"scamp": "Scamp", "clon": "CLON", "balanced": "CLON, balanced"}
DOCUMENT_MESSAGES = 1000
"""In the document every process publishes one message; its numbers are for each process and all of them."""


def traffic_columns(results: Results) -> dict[str, tuple[str, float]]:
    """Of a table: metrics and their scales."""
    scale = scale_of(results)
    return {
        "payloads from other areas": ("far_copies_mean", scale),
        "from the own area": ("near_copies_mean", scale),
        "advertisements from other areas": ("far_advertisements_mean", scale),
    }


def scale_of(results: Results) -> float:
    """From what a process got in our runs to what it would get of as many messages as the document has."""
    for labels in results.points:
        found = results.stat("messages", **labels)
        if found is not None and found.mean:
            return DOCUMENT_MESSAGES / found.mean
    return 1.0


def scaled(results: Results, metric: str, **labels: object) -> Stat:
    return times(stat(results, metric, **labels), scale_of(results))


def times(found: Stat, factor: float) -> Stat:
    low, high = (None if end is None else factor * end for end in (found.low, found.high))
    five = (factor * value for value in (found.min, found.q1, found.median, found.q3, found.max))
    return Stat(found.n, factor * found.mean, low, high, factor * found.sd, *five)
