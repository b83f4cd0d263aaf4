"""What happened when: series over steps of equal length, counted from the first publication.

A step is given by its beginning. The steps are the same for all series of a run.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.metrics.measures import LAYERS, OTHER, Series, layer_name
from epicast.pipeline.metrics.scope import Scope

NAMES = {
    "published_per_second": "messages published in a second, from the first publication on",
    "deliveries_per_second": "deliveries in a second, the publishers' own left out, from the first publication on",
    "missing": "owed pairs of a message and a process that lack a delivery, at the time of the publication",
    "processes_up": "processes that were up at the time",
    "crashes_per_minute": "processes that crashed, in a minute, from the first publication on",
    "parents_lost_per_minute": "processes that lost their parent in a flow, in a minute, from the first publication on",
    **{
        f"sent_bytes_per_second_{layer}": f"bytes that the layer {layer} sent in a second, all processes together"
        for layer in (*LAYERS, OTHER)
    },
}

_DELIVERED, _LOST = "delivered to another", "lost"


def measure(kernel: Kernel, run: RunFacts, scope: Scope) -> Series:
    times, sizes = _counted(kernel, scope)
    rates = [
        ("published_per_second", times["publish"], 1.0),
        ("deliveries_per_second", times[_DELIVERED], 1.0),
        ("crashes_per_minute", times["crash"], 60.0),
    ]
    if scope.count("parent"):
        rates.append(("parents_lost_per_minute", times[_LOST], 60.0))
    found = [
        point for name, counts, per_s in rates for point in _rate(name, counts, scope, per_s, since_us=scope.zero_us)
    ]
    if run.full:
        for layer, counts in sizes.items():
            found += _rate(f"sent_bytes_per_second_{layer}", counts, scope, since_us=scope.start_us)
    return found + _missing(kernel, scope) + _up(kernel, scope)


def _step_sql(column: str, scope: Scope, rounding: str = "floor") -> str:
    return f"CAST({rounding}(CAST({column} - {scope.zero_us} AS DOUBLE) / {scope.step_us}) AS BIGINT)"


def _counted(kernel: Kernel, scope: Scope) -> tuple[dict[str, Counter[int]], dict[str, Counter[int]]]:
    """By what happened: rows of each step; by layer: bytes sent in each step."""
    sql = f"""
        SELECT step, what, layer, count(*) AS times, CAST(sum(bytes) AS BIGINT) AS bytes
        FROM (SELECT {_step_sql("time_us", scope)} AS step, layer, CAST(bytes AS BIGINT) AS bytes,
                     CASE WHEN kind = 'deliver' AND node <> source THEN '{_DELIVERED}'
                          WHEN kind = 'parent' AND peer = {NOBODY} THEN '{_LOST}' ELSE kind END AS what
              FROM events WHERE kind IN ('send', 'publish', 'deliver', 'crash', 'parent')) AS placed
        GROUP BY step, what, layer
    """
    kernel.gather("measured_steps", sql)
    sql = """
        SELECT step, what, layer, CAST(sum(times) AS BIGINT) AS times, CAST(sum(bytes) AS BIGINT) AS bytes
        FROM measured_steps GROUP BY step, what, layer
    """
    times: dict[str, Counter[int]] = {what: Counter() for what in ("publish", _DELIVERED, "crash", _LOST)}
    sizes: dict[str, Counter[int]] = {}
    for row in kernel.query(sql).to_pylist():
        if row["what"] == "send":
            sizes.setdefault(layer_name(row["layer"]), Counter())[row["step"]] += row["bytes"]
        elif row["what"] in times:
            times[row["what"]][row["step"]] += row["times"]
    return times, sizes


def _rate(name: str, counts: Counter[int], scope: Scope, per_s: float = 1.0, *, since_us: int) -> Series:
    step_s = scope.step_us / 1e6
    return [(name, _seconds(step, scope), per_s * counts[step] / step_s) for step in _steps(scope, since_us)]


def _seconds(step: int, scope: Scope) -> float:
    return step * scope.step_us / 1e6


def _steps(scope: Scope, since_us: int) -> range:
    first, last = ((at_us - scope.zero_us) // scope.step_us for at_us in (since_us, scope.end_us))
    return range(first, last + 1)


def _missing(kernel: Kernel, scope: Scope) -> Series:
    sql = f"""
        SELECT step, CAST(sum(missing) AS BIGINT) AS missing
        FROM (SELECT {_step_sql("published_us", scope)} AS step, owed - reached AS missing FROM measured_messages) AS m
        GROUP BY step
    """
    rows = kernel.query(sql).to_pylist()
    return [("missing", _seconds(row["step"], scope), float(row["missing"])) for row in rows]


def _up(kernel: Kernel, scope: Scope) -> Series:
    """Who came or went between two beginnings of steps counts from the later one on."""
    sql = f"""
        SELECT step, CAST(sum(change) AS BIGINT) AS change
        FROM (SELECT {_step_sql("joined_us", scope, "ceil")} AS step, 1 AS change FROM nodes
              UNION ALL SELECT {_step_sql("ended_us", scope, "ceil")}, -1 FROM nodes WHERE ended_us IS NOT NULL) AS m
        GROUP BY step
    """
    changes = Counter({row["step"]: row["change"] for row in kernel.query(sql).to_pylist()})
    steps = _steps(scope, scope.start_us)
    before = sum(change for step, change in changes.items() if step < steps.start)
    ups = accumulate((changes[step] for step in steps), initial=before)
    return [("processes_up", _seconds(step, scope), float(up)) for step, up in zip(steps, list(ups)[1:], strict=True)]
