"""When a run happened, and one pass over its events that counts everything that does not depend on time.

The *window* lasts from the first publication to the last delivery; rates are taken over it. Without messages it is the
whole run. A process *stays* if it was up at the first publication (at the start, without messages) and never ended:
what is said about loads is said about those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel

NAMES = {
    "processes": "processes that ever joined",
    "processes_staying": "processes up at the first publication that never ended",
    "crashes": "processes that crashed",
    "leaves": "processes that left in good order",
    "run_s": "time from the first to the last row of the trace, in s",
    "window_s": "time from the first publication to the last delivery, in s; rates are taken over it",
    "crashes_per_minute": "crashes in a minute of the window",
}

STEPS_MAX = 200
_STEPS_US: list[int] = [factor * 10**power for power in range(5, 15) for factor in (1, 2, 5)]


@dataclass(frozen=True)
class Scope:
    zero_us: int  # of all series: the first publication, or the start
    start_us: int
    end_us: int
    window_us: tuple[int, int]
    totals: list[dict[str, Any]]  # of the tally, over all processes

    @property
    def window_s(self) -> float:
        return (self.window_us[1] - self.window_us[0]) / 1e6

    @property
    def step_us(self) -> int:
        """Of series: a round number that gives no more than STEPS_MAX points."""
        span_us = self.end_us - self.start_us
        return next(step for step in _STEPS_US if span_us <= STEPS_MAX * step)

    def count(self, kind: str, detail: str | None = None, column: str = "times") -> int:
        rows = [row for row in self.totals if row["kind"] == kind and detail in (None, row["detail"])]
        return sum(int(row[column]) for row in rows)


def scope_of(kernel: Kernel) -> Scope | None:
    """Makes `measured_tally` too. None if nothing happened at all."""
    window_us = _window(kernel)
    kernel.gather("measured_tally", _tally_sql(window_us))
    totals = kernel.query(_TOTALS).to_pylist()
    if not totals:
        return None
    start_us, end_us = min(row["first_us"] for row in totals), max(row["last_us"] for row in totals)
    window_us = window_us or (start_us, end_us)
    return Scope(window_us[0], start_us, end_us, window_us, totals)


def _window(kernel: Kernel) -> tuple[int, int] | None:
    sql = """
        SELECT (SELECT min(published_us) FROM publications) AS first_us,
               (SELECT max(published_us) FROM publications) AS published_us,
               (SELECT max(time_us) FROM deliveries) AS delivered_us
    """
    row = kernel.query(sql).to_pylist()[0]
    if row["first_us"] is None:
        return None
    return row["first_us"], max(row["published_us"], row["delivered_us"] or row["published_us"])


def _tally_sql(window_us: tuple[int, int] | None) -> str:
    """Grain: one row per slice of the trace, process, kind of event, layer and detail, apart for messages that carry a
    payload."""
    inside = f"time_us BETWEEN {window_us[0]} AND {window_us[1]}" if window_us else "true"
    return f"""
        SELECT node, kind, layer, detail, payload, count(*) AS times, CAST(sum(bytes) AS BIGINT) AS bytes,
               count(*) FILTER (WHERE inside) AS window_times,
               CAST(COALESCE(sum(bytes) FILTER (WHERE inside), 0) AS BIGINT) AS window_bytes,
               min(time_us) AS first_us, max(time_us) AS last_us
        FROM (SELECT node, kind, layer, CASE WHEN kind = 'repair' THEN detail ELSE '' END AS detail,
                     layer <> '' AND source <> {NOBODY} AS payload, CAST(bytes AS BIGINT) AS bytes, time_us,
                     {inside} AS inside
              FROM events) AS sorted
        GROUP BY node, kind, layer, detail, payload
    """


_TOTALS = """
    SELECT kind, layer, detail, payload, CAST(sum(times) AS BIGINT) AS times, CAST(sum(bytes) AS BIGINT) AS bytes,
           CAST(sum(window_times) AS BIGINT) AS window_times, CAST(sum(window_bytes) AS BIGINT) AS window_bytes,
           min(first_us) AS first_us, max(last_us) AS last_us
    FROM measured_tally GROUP BY kind, layer, detail, payload
"""


def stays_sql(since_us: int, node: str = "nodes") -> str:
    return f"{node}.ended_us IS NULL AND {node}.joined_us <= {since_us}"


def metrics(kernel: Kernel, scope: Scope) -> dict[str, float]:
    sql = f"""
        SELECT count(*) AS processes, count(*) FILTER (WHERE {stays_sql(scope.window_us[0])}) AS processes_staying,
               count(*) FILTER (WHERE how = 'crash') AS crashes, count(*) FILTER (WHERE how = 'leave') AS leaves
        FROM nodes
    """
    found: dict[str, float] = kernel.query(sql).to_pylist()[0]
    found |= {"run_s": (scope.end_us - scope.start_us) / 1e6, "window_s": scope.window_s}
    return found | per_minute("crashes", scope.count("crash", column="window_times"), scope)


def per_minute(name: str, times: int, scope: Scope) -> dict[str, float]:
    return {f"{name}_per_minute": 60 * times / scope.window_s} if scope.window_s else {}
