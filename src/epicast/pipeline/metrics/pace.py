"""How fast and how far messages travel as a run goes on: a tree that was mended again and again is not what it was."""

from __future__ import annotations

from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.measures import Series
from epicast.pipeline.metrics.scope import Scope

_OF = "deliveries by others that were up at the publication, by the time of publication"
NAMES = {
    "hops_mean": f"mean number of links that a message crossed, of {_OF}",
    "latency_ms_mean": f"mean latency in ms, of {_OF}",
}


def measure(kernel: Kernel, scope: Scope) -> Series:
    """The same steps as in `timeline.py`. Sums are of whole numbers, so every kernel gives the same digits."""
    step_us = scope.step_us
    sql = f"""
        SELECT step, count(*) AS times, CAST(sum(hops) AS BIGINT) AS hops, CAST(sum(latency_us) AS BIGINT) AS latency_us
        FROM (SELECT CAST(floor(CAST(d.published_us - {scope.zero_us} AS DOUBLE) / {step_us}) AS BIGINT) AS step,
                     d.hops, d.latency_us
              FROM deliveries AS d JOIN nodes AS n ON d.node = n.node
              WHERE NOT d.own AND n.joined_us <= d.published_us) AS placed
        GROUP BY step
    """
    found: Series = []
    for row in kernel.query(sql).to_pylist():
        time_s = row["step"] * step_us / 1e6
        found.append(("hops_mean", time_s, row["hops"] / row["times"]))
        found.append(("latency_ms_mean", time_s, row["latency_us"] / row["times"] / 1000))
    return found
