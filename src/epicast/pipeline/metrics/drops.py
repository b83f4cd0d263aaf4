"""What is left of the overlay when many processes vanish from the last picture at once, and nothing is mended.

A thought experiment on one picture: some processes are taken out, with all their links, and what the others can still
do with each other is measured. Who is taken out is drawn by lot, from all processes or from those of one or two areas;
several times, with the mean as the result. Every share starts from the whole picture. It takes seconds for a thousand
processes, so it is done only where an experiment asks for it.

Messages follow links in their direction: ways and who can be reached are of the graph with directions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from epicast.core.chance import sample, stream
from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.metrics.graph import Graph, local_clustering
from epicast.pipeline.metrics.measures import Measures

DRAWS = 10  # our guess: a second or two for a thousand processes
SOURCES = 64  # survivors from which ways are looked for, in each draw

Ids = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Strategy:
    """Where processes vanish: everywhere, or in so many areas, of which others are left."""

    name: str
    whose: str
    areas: int
    percents: tuple[int, ...]  # of those concerned


UNIFORM = Strategy("uniform", "all processes", 0, tuple(range(0, 100, 10)))
ONE_AREA = Strategy("one_area", "the processes of one area", 1, (25, 50, 75, 100))
TWO_AREAS = Strategy("two_areas", "the processes of two areas", 2, (25, 50, 75, 100))
STRATEGIES = (UNIFORM, ONE_AREA, TWO_AREAS)

CONNECTIVITY = {
    "weak_share": "share of the survivors in the largest weak component",
    "strong_share": "share of the survivors in the largest strong component",
    "reached_share": "mean share of the survivors to which links lead from a survivor",
}
SHAPE = {
    "clustering": "mean share of the pairs of a survivor's neighbours that are neighbours of each other",
    "path_mean": "mean length of the shortest ways along links from a survivor to those that it reaches",
}


def name_of(strategy: Strategy, percent: int, what: str) -> str:
    return f"drop_{strategy.name}_{percent}_{what}"


def _told(strategy: Strategy) -> dict[str, str]:
    return CONNECTIVITY if strategy.areas else CONNECTIVITY | SHAPE


NAMES = {
    name_of(strategy, percent, what): f"{meaning}, if {percent} % of {strategy.whose} vanish from the last picture"
    for strategy in STRATEGIES
    for percent in strategy.percents
    for what, meaning in _told(strategy).items()
}

# Grain: one row per link, and one per process that is up (peer NOBODY), of the last picture.
_ROWS = f"""
    SELECT DISTINCT s.time_us, s.node, s.peer, '' AS area
    FROM snapshots AS s JOIN (SELECT max(time_us) AS time_us FROM snapshots WHERE overlay = 'active') AS last
         ON s.time_us = last.time_us
    WHERE s.overlay = 'active'
    UNION ALL
    SELECT last.time_us, n.node, CAST({NOBODY} AS BIGINT) AS peer, n.area
    FROM (SELECT max(time_us) AS time_us FROM snapshots WHERE overlay = 'active') AS last
    JOIN nodes AS n ON n.joined_us <= last.time_us AND (n.ended_us IS NULL OR n.ended_us > last.time_us)
"""
_SCHEMA = pa.schema({"name": pa.string(), "amount": pa.float64()})


def measure(kernel: Kernel, run: RunFacts) -> Measures:
    rows = kernel.apply(_ROWS, ["time_us"], partial(_numbers_of, seed=run.seed), _SCHEMA)
    return Measures({row["name"]: row["amount"] for row in rows.to_pylist()})


def _numbers_of(rows: pa.Table, seed: int) -> pa.Table:
    rows = rows.sort_by([("node", "ascending"), ("peer", "ascending")])  # lots must fall alike wherever this runs
    node, peer = (rows.column(name).to_numpy() for name in ("node", "peer"))
    links = peer != NOBODY
    graph = Graph.of(node[~links], node[links], peer[links])
    area_of = dict(zip(node[~links].tolist(), np.array(rows.column("area").to_pylist())[~links].tolist(), strict=True))
    known = np.unique(node)
    found = numbers(graph, [area_of.get(each, "") for each in known.tolist()], seed)
    return pa.table([pa.array(list(found)), pa.array(list(found.values()), pa.float64())], schema=_SCHEMA)


# The graph


def numbers(graph: Graph, areas: list[str], seed: int) -> dict[str, float]:
    """`areas` has a label for each process of the graph, in its order."""
    found: dict[str, float] = {}
    for strategy in STRATEGIES:
        for percent in strategy.percents:
            sums: dict[str, list[float]] = defaultdict(list)
            for draw in range(DRAWS):
                rng = stream(seed, "drops", strategy.name, str(percent), str(draw))
                for what, value in _left(graph, strategy, areas, percent, rng):
                    sums[what].append(value)
            found |= {name_of(strategy, percent, what): fmean(values) for what, values in sums.items()}
    return found


def _left(graph: Graph, strategy: Strategy, areas: list[str], percent: int, rng: Random) -> Iterator[tuple[str, float]]:
    concerned = _concerned(strategy, areas, rng)
    stays = np.ones(graph.size, bool)
    stays[sample(rng, concerned, round(len(concerned) * percent / 100))] = False
    links = graph.links[stays][:, stays]
    if concerned and links.shape[0]:
        yield from _connectivity(links)
        yield from _ways(links, rng, path=not strategy.areas)
        if not strategy.areas:
            yield "clustering", float(np.mean(local_clustering(Graph(links.shape[0], links, 0).both_ways)))


def _concerned(strategy: Strategy, areas: list[str], rng: Random) -> list[int]:
    """The places of those among whom the lot falls; none if no area would be left."""
    if not strategy.areas:
        return list(range(len(areas)))
    labels = sorted(set(areas) - {""})
    hit = set(sample(rng, labels, strategy.areas)) if len(labels) > strategy.areas else set()
    return [at for at, area in enumerate(areas) if area in hit]


def _connectivity(links: csr_matrix) -> Iterator[tuple[str, float]]:
    for kind in ("weak", "strong"):
        _, labels = connected_components(links, directed=True, connection=kind)
        yield f"{kind}_share", float(np.bincount(labels).max() / len(labels))


def _ways(links: csr_matrix, rng: Random, *, path: bool) -> Iterator[tuple[str, float]]:
    """From some survivors to all; everybody reaches itself."""
    size = links.shape[0]
    away = dijkstra(links, indices=sorted(sample(rng, range(size), SOURCES)), unweighted=True)
    reached = np.isfinite(away)
    yield "reached_share", float(reached.mean())
    others = int(reached.sum()) - len(away)
    if path and others:
        yield "path_mean", float(away[reached].sum()) / others
