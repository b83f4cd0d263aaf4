"""In which order processes delivered, what they lack, and how long the order took.

Publications of a total order carry a time of their own, which the trace keeps; where one has none, the time at which it
was published stands for it. The order that was wanted is that of (time, source, number) within each topic. How much of
it a process kept is the longest common subsequence of what it delivered with the order that was wanted. No message
comes twice in either, so it is a longest increasing subsequence of places, which takes n log n steps.

Measured where publications carry times, or where an experiment asks for `order`. All but the holes is said about the
processes that stay: up at the first publication and to the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from epicast.pipeline.kernel import ORDER, Kernel, RunFacts
from epicast.pipeline.metrics.distributions import Distribution
from epicast.pipeline.metrics.measures import Measures, ratio
from epicast.pipeline.metrics.scope import Scope, stays_sql

Places = npt.NDArray[np.int64]

BUCKETS = 64  # groups of processes that are looked at together
PERCENT = 100

_KEPT = "share of what a process that stays delivered that is in the order of (time, source)"
NAMES = {
    "order_kept_min": f"smallest {_KEPT}, as the longest common subsequence of both orders",
    "order_kept_mean": f"mean {_KEPT}",
    "order_kept_max": f"largest {_KEPT}",
    "holes": "owed pairs without a delivery, of messages that somebody to whom they were owed delivered",
    "holes_staying": "holes at processes that stay",
    "processes_with_holes": "processes that stay and have a hole",
    "hole_free_share": "share of the processes that stay that have no hole",
    "late": "pairs of a message and a process where it came only after its turn in the order, and was dropped",
    "corrections": "times that a message came after its turn in the order and was handed over as a correction",
}
HISTOGRAMS = {"order_kept_percent": f"{_KEPT}, in whole percent, over processes"}

DELAY = Distribution(
    "delay_ms",
    "from publication to delivery by a process that stays, the publisher's own delivery included, in ms",
    unit=1000,
)
DELAY_LAST = Distribution(
    "delay_last_ms",
    "from the publication of a message to its last delivery by a process that stays, the publisher included, in ms",
    unit=1000,
)
DISTRIBUTIONS = (DELAY, DELAY_LAST)


def define(kernel: Kernel, run: RunFacts) -> bool:
    """`measured_order` has one row per message: its place in the order of its topic. False if nobody asked."""
    stamped = kernel.query(f"SELECT count({_STAMP}) AS n FROM marks WHERE kind = 'publish'").column(0)[0].as_py()
    if not stamped and ORDER not in run.extra:
        return False
    kernel.define("measured_order", _PLACES)
    return True


_STAMP = "TRY_CAST(detail AS BIGINT)"
_PLACES = f"""
    SELECT p.source, p.seq, t.line, ROW_NUMBER() OVER (PARTITION BY p.topic ORDER BY p.stamp, p.source, p.seq) AS place
    FROM (SELECT source, seq, topic, COALESCE({_STAMP}, time_us) AS stamp FROM marks WHERE kind = 'publish') AS p
    JOIN (SELECT topic, min(row) AS line FROM marks WHERE kind = 'publish' GROUP BY topic) AS t ON t.topic = p.topic
"""

# What was delivered long ago may come again, and be taken for late once it is forgotten.
_LATE = """
    SELECT count(*) AS n
    FROM (SELECT DISTINCT node, source, seq FROM marks WHERE kind = 'gap' AND detail = '1 late') AS g
    WHERE NOT EXISTS (
        SELECT 1 FROM deliveries AS d WHERE d.node = g.node AND d.source = g.source AND d.seq = g.seq
    )
"""


def measure(kernel: Kernel, scope: Scope) -> Measures:
    """`measured_messages` is known (see `delivery.py`)."""
    found = _kept(kernel, scope)
    late = kernel.query(_LATE).column(0)[0].as_py()
    metrics = _holes(kernel, scope) | {"late": late, "corrections": scope.count("correction")}
    return found + Measures(metrics)


def counts(scope: Scope) -> dict[Distribution, str]:
    timely = f"""
        FROM deliveries AS d JOIN nodes AS n ON d.node = n.node
        WHERE d.latency_us IS NOT NULL AND {stays_sql(scope.window_us[0], "n")}
    """
    return {
        DELAY: f"SELECT d.latency_us AS amount, 1 AS times {timely}",
        DELAY_LAST: f"SELECT max(d.latency_us) AS amount, 1 AS times {timely} GROUP BY d.source, d.seq",
    }


# How much of the order was kept

KEPT = pa.schema(
    {"percent": pa.int64(), "processes": pa.int64(), "total": pa.float64(), "lo": pa.float64(), "hi": pa.float64()}
)


def _kept(kernel: Kernel, scope: Scope) -> Measures:
    sql = f"""
        SELECT d.node, p.line, d.row, p.place, d.node % {BUCKETS} AS bucket
        FROM deliveries AS d
        JOIN measured_order AS p ON p.source = d.source AND p.seq = d.seq
        JOIN nodes AS n ON n.node = d.node
        WHERE {stays_sql(scope.window_us[0], "n")}
    """
    rows = kernel.apply(sql, ["bucket"], kept_of, KEPT).to_pylist()
    processes = sum(row["processes"] for row in rows)
    if not processes:
        return Measures()
    times: dict[int, int] = {}
    for row in rows:
        times[row["percent"]] = times.get(row["percent"], 0) + row["processes"]
    metrics = {
        "order_kept_min": min(row["lo"] for row in rows),
        "order_kept_mean": sum(sorted(row["total"] for row in rows)) / processes,
        "order_kept_max": max(row["hi"] for row in rows),
    }
    return Measures(metrics, [("order_kept_percent", float(percent), count) for percent, count in times.items()])


def kept_of(rows: pa.Table) -> pa.Table:
    """One row for each whole percent, of the processes of a bucket."""
    node, line, row, place = (rows.column(name).to_numpy() for name in ("node", "line", "row", "place"))
    order = np.lexsort((row, line, node))
    node, line, place = node[order], line[order], place[order]
    kept: dict[int, int] = {}
    delivered: dict[int, int] = {}
    for which, places in _sequences(node, line, place):
        kept[which] = kept.get(which, 0) + longest_increasing(places)
        delivered[which] = delivered.get(which, 0) + len(np.unique(places))
    by_percent: dict[int, list[float]] = {}
    for which, count in kept.items():
        share = count / delivered[which]
        by_percent.setdefault(round(PERCENT * share), []).append(share)
    return pa.Table.from_pylist(
        [
            {"percent": percent, "processes": len(all_), "total": sum(sorted(all_)), "lo": min(all_), "hi": max(all_)}
            for percent, all_ in by_percent.items()
        ],
        KEPT,
    )


def _sequences(node: Places, line: Places, place: Places) -> Iterator[tuple[int, Places]]:
    """The places that a process delivered, of one topic after the other."""
    bounds = np.flatnonzero((np.diff(node) != 0) | (np.diff(line) != 0)) + 1
    starts = np.concatenate([[0], bounds])
    for start, places in zip(starts.tolist(), np.split(place, bounds), strict=True):
        yield int(node[start]), places


def longest_increasing(places: Places) -> int:
    """The length of a longest strictly increasing subsequence: `ends[i]` is the lowest end of one of length i + 1."""
    if (np.diff(places) > 0).all():
        return len(places)
    ends: list[int] = []
    for place in places.tolist():
        at = bisect_left(ends, place)
        if at == len(ends):
            ends.append(place)
        else:
            ends[at] = place
    return len(ends)


# Holes

# How many messages a process is owed: those published after its join, counted back from the end.
_LACKING = """
    SELECT count(*) AS processes, CAST(COALESCE(sum(o.owed - COALESCE(g.got, 0)), 0) AS BIGINT) AS holes
    FROM (SELECT node, joined_us, of_message,
                 sum(of_message) OVER (ORDER BY time_us DESC, of_message DESC
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS owed
          FROM (SELECT joined_us AS time_us, joined_us, 0 AS of_message, node FROM nodes WHERE ended_us IS NULL
                UNION ALL
                SELECT published_us, published_us, 1, source FROM measured_messages WHERE reached > 0) AS moments) AS o
    LEFT JOIN (SELECT node, count(*) AS got
               FROM (SELECT DISTINCT d.node, d.source, d.seq FROM deliveries AS d JOIN nodes AS n ON n.node = d.node
                     WHERE n.ended_us IS NULL AND n.joined_us <= d.published_us) AS pairs
               GROUP BY node) AS g ON g.node = o.node
    WHERE o.of_message = 0 AND o.joined_us <= {since_us} AND o.owed > COALESCE(g.got, 0)
"""


def _holes(kernel: Kernel, scope: Scope) -> dict[str, float]:
    since_us = scope.window_us[0]
    sql = f"""
        SELECT CAST(COALESCE(sum(owed - reached) FILTER (WHERE reached > 0), 0) AS BIGINT) AS holes,
               (SELECT count(*) FROM nodes WHERE {stays_sql(since_us)}) AS staying
        FROM measured_messages
    """
    row = kernel.query(sql).to_pylist()[0]
    lacking = {"processes": 0, "holes": 0}
    if row["holes"]:
        lacking = kernel.query(_LACKING.format(since_us=since_us)).to_pylist()[0]
    return {
        "holes": row["holes"],
        "holes_staying": lacking["holes"],
        "processes_with_holes": lacking["processes"],
        **ratio("hole_free_share", row["staying"] - lacking["processes"], row["staying"]),
    }
