"""The dissemination trees in the last picture of a run."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.bins import bounded
from epicast.pipeline.metrics.measures import Measures, ratio
from epicast.pipeline.metrics.tree_shape import Edge, Shapes, View, shapes

NAMES = {
    "trees": "trees in the last picture of them",
    "tree_depth_mean": "mean number of links from the root, of all but the root, over all trees",
    "tree_depth_max": "largest number of links from the root, over all trees",
    "tree_out_degree_mean": "mean number of children of the processes that have any",
    "tree_out_degree_max": "largest number of children",
    "tree_leaf_share": "share of the processes in a tree that have no child in it",
    "tree_orphans": "processes without a way to the root, summed over all trees",
    "tree_stretch_mean": (
        "mean over processes of the links to the root in the tree, divided by those of the shortest way from the root "
        "in the overlay at the same time (links, not latencies: the trace has no latencies of ways not taken)"
    ),
    **{
        f"tree_rtt_ms_{each}": f"{words} of the sum of round trips on the way from the root to a process, in ms"
        for each, words in (("mean", "mean"), ("p50", "median"), ("p90", "90th percentile"), ("max", "largest"))
    },
    "childless_share": "share of the processes in any tree that have no child in any of them",
}
HISTOGRAMS = {
    "depth": "links from the root, of all but the root, over all trees",
    "out_degree": "children of a process in a tree",
    "children": "children of a process over all trees",
    "leaf_in_trees": "trees in which a process has no child",
    "tree_rtt_ms": "sum of round trips, as processes measured them to their parents, on the way from the root, in ms",
}

_SCHEMA = pa.schema({"name": pa.string(), "amount": pa.float64(), "times": pa.int64()})
_METRIC = 0  # stands for `times` in the row of a metric


def last_picture_us(kernel: Kernel) -> int | None:
    sql = "SELECT max(time_us) AS time_us FROM snapshots WHERE overlay = 'tree'"
    time_us: int | None = kernel.query(sql).column(0)[0].as_py()
    return time_us


def measure(kernel: Kernel, picture_us: int) -> Measures:
    rows = kernel.apply(_rows_sql(picture_us), ["time_us"], _measured, _SCHEMA).to_pylist()
    return Measures(
        {row["name"]: row["amount"] for row in rows if row["times"] == _METRIC},
        [(row["name"], row["amount"], row["times"]) for row in rows if row["times"] != _METRIC],
    )


def _rows_sql(picture_us: int) -> str:
    """Grain: one row per edge of the overlay or of a tree, and one per process that is up."""
    return f"""
        SELECT time_us, overlay, flow, node, peer, value FROM snapshots
        WHERE time_us = {picture_us} AND overlay IN ('active', 'tree')
        UNION ALL
        SELECT CAST({picture_us} AS BIGINT) AS time_us, 'node' AS overlay, CAST(node AS STRING) AS flow, node,
               CAST({NOBODY} AS BIGINT) AS peer, CAST(-1 AS BIGINT) AS value
        FROM nodes WHERE joined_us <= {picture_us} AND (ended_us IS NULL OR ended_us > {picture_us})
    """


def _measured(rows: pa.Table) -> pa.Table:
    """From the rows of one picture to metrics and counts: name, amount, times."""
    found = _shapes_of(rows)
    result = [(name, value, _METRIC) for name, value in sorted(_metrics(found).items())]
    for name, counts in _counts(found).items():
        unit = 1000 if name.endswith("_ms") else 1
        result += [(name, value, times) for value, times in bounded(counts.items(), unit)]
    names, amounts, times = zip(*result, strict=True)
    return pa.table([pa.array(names), pa.array(amounts, pa.float64()), pa.array(times, pa.int64())], schema=_SCHEMA)


def _shapes_of(rows: pa.Table) -> Shapes:
    names: dict[str, int] = {}
    views: list[View] = []
    parents: dict[str, list[Edge]] = defaultdict(list)
    columns = (rows.column(name).to_pylist() for name in ("overlay", "flow", "node", "peer", "value"))
    for overlay, text, node, peer, rtt_us in zip(*columns, strict=True):
        if overlay == "node":
            names[text] = node
        elif overlay == "tree":
            parents[text].append((node, peer))
        else:
            views.append((node, peer, rtt_us))
    # A flow is called after the process that it comes from: name/number.
    roots = {flow: names[source] for flow in parents if (source := flow.rpartition("/")[0]) in names}
    return shapes(names.values(), roots, parents, views)


def _counts(found: Shapes) -> dict[str, Counter[int]]:
    return {
        "depth": found.depth,
        "out_degree": found.out_degree,
        "children": Counter(found.children.values()),
        "leaf_in_trees": Counter(found.leaf_in.values()),
        "tree_rtt_ms": Counter(found.rtt_us),
    }


def _metrics(found: Shapes) -> dict[str, float]:
    metrics: dict[str, float] = {"trees": found.trees, "tree_orphans": found.orphans}
    inner = Counter({degree: times for degree, times in found.out_degree.items() if degree})
    for name, part in (("tree_depth", found.depth), ("tree_out_degree", inner)):
        if part:
            metrics[f"{name}_max"] = max(part)
            metrics[f"{name}_mean"] = sum(value * times for value, times in part.items()) / part.total()
    metrics |= ratio("tree_leaf_share", found.out_degree[0], found.out_degree.total())
    metrics |= ratio("tree_stretch_mean", math.fsum(found.stretch), len(found.stretch))
    childless = sum(not count for count in found.children.values())
    return metrics | ratio("childless_share", childless, len(found.children)) | _round_trips(found.rtt_us)


def _round_trips(rtt_us: list[int]) -> dict[str, float]:
    if not rtt_us:
        return {}
    p50, p90, largest = np.percentile(rtt_us, (50, 90, 100), method="inverted_cdf") / 1000
    values = {"mean": sum(rtt_us) / len(rtt_us) / 1000, "p50": p50, "p90": p90, "max": largest}
    return {f"tree_rtt_ms_{each}": float(value) for each, value in values.items()}
