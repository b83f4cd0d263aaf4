"""The overlay of neighbours in every picture of a run. Each is looked at apart, so that many can be in parallel."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.bins import bounded
from epicast.pipeline.metrics.graph import EXACT_NODES_MAX, SOURCES, Graph, degrees, numbers
from epicast.pipeline.metrics.measures import Histogram, Measures, Series, thinned
from epicast.pipeline.metrics.scope import Scope

_LARGE = f"of a component of more than {EXACT_NODES_MAX} processes, from {SOURCES} of them"
_MEANINGS = {
    "processes": "processes that were up",
    "links": "entries of views, to processes that were up",
    "edges": "pairs of processes of which one has the other in its view",
    "stale_share": "share of the entries of views that are of processes that were not up",
    "asymmetric_share": "share of the links without one in return",
    "degree_mean": "mean number of links of a process",
    "degree_min": "smallest number of links of a process",
    "degree_max": "largest number of links of a process",
    "degree_common": "most common number of links of a process",
    "above_common_share": "share of the processes that have more links than is common",
    "about_mean_share": "share of the processes that have as many links as the mean, rounded, or one more or less",
    "in_degree_min": "smallest number of links to a process",
    "in_degree_max": "largest number of links to a process",
    "unknown_processes": "processes to which there is no link",
    "weak_components": "parts of the graph between which there is no link",
    "largest_weak_share": "share of the processes in the largest weak component",
    "strong_components": "parts of the graph within which links lead from each process to each other",
    "largest_strong_share": "share of the processes in the largest strong component",
    "clustering": "mean share of the pairs of a process's neighbours that are neighbours of each other",
    "path_mean": "mean length of the shortest ways between two processes of the largest component",
    "diameter": "length of the longest of the shortest ways in the largest component",
    "path_mean_estimate": f"estimate of the mean length of shortest ways, {_LARGE}",
    "diameter_lower_bound": f"length of the longest of the shortest ways that were found, {_LARGE}",
}
NAMES = {f"overlay_{name}": f"{meaning}, in the last picture" for name, meaning in _MEANINGS.items()}
SERIES = {f"overlay_{name}": f"{meaning}, in each picture" for name, meaning in _MEANINGS.items()}
HISTOGRAMS = {"degree": "links of a process in the last picture"}

_SCHEMA = pa.schema({"time_us": pa.int64(), "name": pa.string(), "amount": pa.float64(), "times": pa.int64()})
_DEGREE = "degree"

# Grain: one row per edge, and one per process that is up (peer NOBODY), of each picture.
_ROWS = f"""
    SELECT DISTINCT time_us, node, peer FROM snapshots WHERE overlay = 'active'
    UNION ALL
    SELECT p.time_us, n.node, CAST({NOBODY} AS BIGINT) AS peer
    FROM (SELECT DISTINCT time_us FROM snapshots WHERE overlay = 'active') AS p
    JOIN nodes AS n ON n.joined_us <= p.time_us AND (n.ended_us IS NULL OR n.ended_us > p.time_us)
"""


def measure(kernel: Kernel, scope: Scope) -> Measures:
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    degree: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in sorted(kernel.apply(_ROWS, ["time_us"], _numbers_of, _SCHEMA).to_pylist(), key=lambda r: r["time_us"]):
        if row["name"] == _DEGREE:
            degree[row["time_us"]].append((int(row["amount"]), row["times"]))
        else:
            series[row["name"]].append(((row["time_us"] - scope.zero_us) / 1e6, row["amount"]))
    if not degree:
        return Measures()
    last_s = (max(degree) - scope.zero_us) / 1e6
    metrics = {f"overlay_{name}": value for name, points in series.items() for at, value in points if at == last_s}
    return Measures(metrics, _histogram(degree[max(degree)]), _series(series))


def _histogram(counts: list[tuple[int, int]]) -> Histogram:
    return [(_DEGREE, value, times) for value, times in bounded(counts)]


def _series(series: dict[str, list[tuple[float, float]]]) -> Series:
    return [(f"overlay_{name}", at, value) for name, points in series.items() for at, value in thinned(points)]


def _numbers_of(rows: pa.Table) -> pa.Table:
    """From the rows of one picture to its numbers, and the counts of its degrees."""
    time_us = rows.column("time_us")[0].as_py()
    node, peer = (rows.column(name).to_numpy() for name in ("node", "peer"))
    edge = peer != NOBODY
    graph = Graph.of(node[~edge], node[edge], peer[edge])
    values, times = np.unique(degrees(graph), return_counts=True)
    found = [(name, value, 1) for name, value in numbers(graph).items()]
    found += [(_DEGREE, value, count) for value, count in zip(values.tolist(), times.tolist(), strict=True)]
    names, amounts, counts = zip(*found, strict=True)
    columns = [pa.array([time_us] * len(found)), pa.array(names), pa.array(amounts, pa.float64()), pa.array(counts)]
    return pa.table(columns, schema=_SCHEMA)
