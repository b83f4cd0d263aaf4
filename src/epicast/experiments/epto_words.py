"""What the experiments about EpTO have in common: how they read their points, and how they put holes into words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from epicast.experiments import pictures, wording
from epicast.experiments.claims import Finding, labels_of, stat
from epicast.pipeline.confidence import Stat
from epicast.pipeline.guarantees.verdict import counted
from epicast.pipeline.results import Results

CLOCKS = ("global", "logical")
ALWAYS = (
    "Holes and inversions are told apart for every run below, under the guarantees: EpTO promises that there are no "
    "inversions, and nothing about holes."
)


def total(results: Results, metric: str, points: Iterable[Mapping[str, object]]) -> int:
    """Over all seeds of these points."""
    found = (stat(results, metric, **labels) for labels in points)
    return round(sum(each.mean * each.n for each in found))


def holes_among(results: Results, points: Iterable[Mapping[str, object]]) -> tuple[str, int]:
    """At processes that stay, over all seeds: in words and in number."""
    where = list(points)
    holes, owed = (total(results, metric, where) for metric in ("holes_staying", "owed"))
    return f"{counted(holes, 'hole')} among {owed:,} deliveries", holes


def all_in_order(results: Results, points: Iterable[Mapping[str, object]]) -> tuple[str, bool]:
    """In words, and whether it is so."""
    ordered = in_order(results, points)
    return f"{'all' if ordered else 'not all'} in one order", ordered


def in_order(results: Results, points: Iterable[Mapping[str, object]]) -> bool:
    """Did every process deliver what it delivered in the order of (time, source)? Then there are no inversions."""
    return all(stat(results, "order_kept_min", **labels).min == 1 for labels in points)


Points = Callable[[Results, str], Sequence[pictures.Labels]]
"""Those of an experiment with one clock."""


def judge_order(points: Points, reason: str = "") -> Callable[[Results], Finding]:
    """At all points of both clocks."""

    def judge(results: Results) -> Finding:
        everywhere = [each for clock in CLOCKS for each in points(results, clock)]
        text, ordered = all_in_order(results, everywhere)
        return Finding(f"{text}: {total(results, 'deliveries', everywhere):,} deliveries", ordered, reason)

    return judge


def by_clock(
    results: Results, metric: str, axis: str, points: Points
) -> dict[str, dict[float, tuple[str, pictures.Labels]]]:
    """A curve for each clock, along an axis whose labels are numbers."""
    return {
        f"{clock} clock{'s' if clock == 'logical' else ''}": {
            float(str(labels[axis])): (metric, labels) for labels in points(results, clock)
        }
        for clock in CLOCKS
    }


def hole_free(results: Results, **labels: object) -> Stat:
    """The share of the processes that stay which lack nothing."""
    return stat(results, "hole_free_share", **labels)


def numbers(results: Results, axis: str) -> list[float]:
    """The values of an axis whose labels are numbers, in ascending order."""
    return sorted(float(label) for label in labels_of(results, axis))


def label_of(results: Results, axis: str, number: float) -> str:
    return next(label for label in labels_of(results, axis) if float(label) == number)


def delay(results: Results, which: str = "delay_ms_p50", **labels: object) -> Stat:
    """From publication to delivery in ms, the publisher's own included: the median, unless another is asked for."""
    return stat(results, which, **labels)


def percents(found: Mapping[str, Stat]) -> str:
    return wording.each({name: wording.mean_percent(each) for name, each in found.items()})


HOLES = {
    "processes without a hole (%)": ("hole_free_share", 100.0),
    "holes": ("holes_staying", 1.0),
    "of them late": ("late", 1.0),
}
DELAYS = {
    "delay, median (ms)": ("delay_ms_p50", 1.0),
    "90th percentile": ("delay_ms_p90", 1.0),
    "until the last has it, median (ms)": ("delay_last_ms_p50", 1.0),
}
"""Columns of tables: metrics and their scales."""


def cells(results: Results, columns: Mapping[str, tuple[str, float]], **labels: object) -> list[str]:
    return [wording.mean_or_nothing(results.stat(metric, **labels), scale) for metric, scale in columns.values()]
