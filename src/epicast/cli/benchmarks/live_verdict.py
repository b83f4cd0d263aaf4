"""What the measurements of live messaging come to: epicast over each other system, cell by cell, and targets.

A cell is a number of subscribers and a size of payloads. A target is judged on the geometric mean over all cells and
on the worst one. A measurement in which anything was lost or came twice does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean, median

from epicast.cli.benchmarks.live_job import Job, Result
from epicast.cli.benchmarks.live_systems import OTHERS, OURS, VARIANTS
from epicast.cli.benchmarks.verdict import Target

Results = Mapping[Job, Result]
Measure = Callable[[Result], float | None]

MEASURES: dict[str, Measure] = {
    "throughput": lambda result: result.per_second,
    "p50": lambda result: result.p50_us,
    "p99": lambda result: result.p99_us,
    "p99_of_second": lambda result: result.p99_of_second_us,
    "cpu": lambda result: result.cpu_ms_per_1000,
}
GOALS = (
    *(("throughput", "nats", 3.0), ("throughput", "zenoh", 1.2)),
    *(("cpu", "nats", round(1 / 3.0, 3)), ("cpu", "zenoh", round(1 / 1.2, 3))),
    *(("p99", "nats", 1.0), ("p99", "zenoh", 1.0)),
)
"""Processor time, of all processes and the server's, is to be as many times less as deliveries are to be more. On a
machine whose cores are all busy either says the same; where others use the machine too, processor time still does."""


def _targets() -> dict[str, Target]:
    words = {
        "throughput": "deliveries a second",
        "cpu": "processor time for a delivery, of all processes,",
        "p99": "99th percentile of latency",
    }
    found = {}
    for measure, other, bound in GOALS:
        for suffix, where in (("", "mean of all cells"), ("_worst", "worst cell")):
            meaning = f"{words[measure]} over that of {other}, {where}"
            found[f"{measure}_vs_{other}{suffix}"] = Target(bound, measure == "throughput", meaning)
    found["lost"] = Target(0, False, "messages that epicast lost or delivered twice")
    return found


TARGETS = _targets()


def middle(samples: Sequence[Result]) -> Result:
    """The median of each value over the measurements that count; what went wrong in any is kept."""
    lost, duplicates = sum(each.lost for each in samples), sum(each.duplicates for each in samples)
    error = next((each.error for each in samples if each.error), "")
    valid = [each for each in samples if each.valid]
    if not valid:
        return Result(lost=lost, duplicates=duplicates, error=error)
    speeds = sorted(valid, key=lambda each: each.per_second or 0.0)
    typical = speeds[(len(speeds) - 1) // 2]
    return Result(
        typical.messages,
        typical.deliveries,
        typical.seconds,
        _median([each.p50_us for each in valid]),
        _median([each.p99_us for each in valid]),
        _median([each.p99_of_second_us for each in valid]),
        _median([each.cpu_ms_per_1000 for each in valid]),
        _median([each.cpu_at_rate_ms_per_1000 for each in valid]),
        _median([each.stolen for each in valid]) or 0.0,
        sum(each.left_out for each in valid),
        lost,
        duplicates,
        error,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def by_cell(results: Results, other: str, ours: str = OURS) -> dict[str, dict[str, float]]:
    """For each cell in which both were measured: ours over the other's."""
    known = {(job.system, job.cell): result for job, result in results.items()}
    found: dict[str, dict[str, float]] = {}
    for cell in dict.fromkeys(job.cell for job in results):
        mine, theirs = known.get((ours, cell)), known.get((other, cell))
        if mine is None or theirs is None:
            continue
        for name, measure in MEASURES.items():
            a, b = measure(mine), measure(theirs)
            if a and b:
                found.setdefault(cell, {})[name] = round(a / b, 3)
    return found


def ratios(results: Results) -> dict[str, float | None]:
    """The names of the targets."""
    cells = {other: by_cell(results, other) for other in OTHERS}
    found: dict[str, float | None] = {}
    for measure, other, _ in GOALS:
        values = [each[measure] for each in cells[other].values() if measure in each]
        worst = min if measure == "throughput" else max
        found[f"{measure}_vs_{other}"] = round(geometric_mean(values), 3) if values else None
        found[f"{measure}_vs_{other}_worst"] = worst(values) if values else None
    # A measurement that failed counts like a lost message: nobody can say that there was none.
    faults = [each.lost + each.duplicates + bool(each.error) for job, each in results.items() if job.system == OURS]
    found["lost"] = sum(faults) if faults else None
    return found


def costs(results: Results) -> dict[str, dict[str, dict[str, float]]]:
    """What TCP, TLS and signatures cost: each over the plain kind, by cell."""
    return {variant: found for variant in VARIANTS if (found := by_cell(results, OURS, variant))}
