"""Questions about the graph of an overlay, answered by graph libraries. Pure: nodes and edges in, numbers out.

An edge (a, b) says that a has b in its view. Components, clustering and distances are of the graph without directions,
since a link carries messages both ways; strong components are of the graph with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import rustworkx as rx
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from epicast.core.chance import sample, stream

EXACT_NODES_MAX = 3000
"""Distances in larger graphs are taken from a few nodes only: their number grows with the square."""
SOURCES = 64
_BATCH = 16  # of them, whose distances are in memory at a time

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    size: int
    links: csr_matrix  # 1 where the row's node has the column's in its view
    stale: int  # edges to nodes that are not there any more

    @classmethod
    def of(cls, nodes: Ids, sources: Ids, targets: Ids) -> Graph:
        """`nodes` are those that are up; whoever has a view is up too."""
        known = np.unique(np.concatenate([nodes, sources]))
        edges = np.unique(np.stack([sources, targets], axis=1), axis=0)
        edges = edges[edges[:, 0] != edges[:, 1]]
        there = np.isin(edges[:, 1], known)
        rows, columns = np.searchsorted(known, edges[there].T)
        links = csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape=(len(known), len(known)))
        return cls(len(known), links, int(np.count_nonzero(~there)))

    @property
    def both_ways(self) -> csr_matrix:
        both = self.links + self.links.T
        both.data[:] = 1
        return both


def numbers(graph: Graph) -> dict[str, float]:
    """All that can be said; names are explained in `overlay.py`."""
    links, both = graph.links, graph.both_ways
    count = int(links.nnz)
    mutual = int(links.multiply(links.T).nnz)
    found: dict[str, float] = {"processes": graph.size, "links": count, "edges": int(both.nnz) // 2}
    if count + graph.stale:
        found["stale_share"] = graph.stale / (count + graph.stale)
    if count:
        found["asymmetric_share"] = (count - mutual) / count
    if graph.size:
        found |= _degrees(degrees(graph), np.bincount(links.indices, minlength=graph.size))
        found |= _components(links)
        found["clustering"] = float(np.mean(local_clustering(both)))
        found |= _distances(both)
    return found


def degrees(graph: Graph) -> Ids:
    ends = np.asarray(graph.links.indptr, np.int64)
    return ends[1:] - ends[:-1]


def _degrees(out: Ids, into: Ids) -> dict[str, float]:
    common = int(np.argmax(np.bincount(out)))  # the lowest, if several are
    return {
        "degree_mean": float(out.mean()),
        "degree_min": int(out.min()),
        "degree_max": int(out.max()),
        "degree_common": common,
        "above_common_share": float(np.mean(out > common)),
        "about_mean_share": float(np.mean(np.abs(out - round(float(out.mean()))) <= 1)),
        "in_degree_min": int(into.min()),
        "in_degree_max": int(into.max()),
        "unknown_processes": int(np.count_nonzero(into == 0)),
    }


def _components(links: csr_matrix) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in ("weak", "strong"):
        count, labels = connected_components(links, directed=True, connection=kind)
        found[f"{kind}_components"] = int(count)
        found[f"largest_{kind}_share"] = float(np.bincount(labels).max() / len(labels))
    return found


def local_clustering(both: csr_matrix) -> NDArray[np.float64]:
    """Of each node, the share of pairs of neighbours that are neighbours of each other; 0 with fewer than two."""
    degree = np.diff(np.asarray(both.indptr, np.float64))
    closed = np.asarray((both @ both).multiply(both).sum(axis=1), np.float64).ravel()
    pairs = degree * (degree - 1)
    return closed / np.where(pairs > 0, pairs, 1)


def _distances(both: csr_matrix) -> dict[str, float]:
    """Within the largest component. What rests on a part of the nodes has another name."""
    part = _largest(both)
    size = part.shape[0]
    if size < 2:
        return {}
    if size <= EXACT_NODES_MAX:
        away = _all_distances(part)
        return {"path_mean": float(away.sum()) / (size * (size - 1)), "diameter": float(away.max())}
    chosen = np.sort(np.array(sample(stream(size, "sources of distances"), range(size), SOURCES)))
    total, longest = _walk(part, chosen)
    return {"path_mean_estimate": total / (SOURCES * (size - 1)), "diameter_lower_bound": longest}


def _largest(both: csr_matrix) -> csr_matrix:
    count, labels = connected_components(both, directed=False)
    if count == 1:
        return both
    inside = np.flatnonzero(labels == np.argmax(np.bincount(labels)))
    return both[inside][:, inside]


def _all_distances(part: csr_matrix) -> NDArray[np.float64]:
    """Between all pairs: several times faster than one after the other. On one thread: other tasks have theirs."""
    links = part.tocoo()
    net: rx.PyDiGraph[int, None] = rx.PyDiGraph(multigraph=False)
    net.add_nodes_from(range(part.shape[0]))
    net.add_edges_from_no_data(list(zip(links.row.tolist(), links.col.tolist(), strict=True)))
    return rx.digraph_distance_matrix(net, parallel_threshold=part.shape[0] + 1)


def _walk(part: csr_matrix, sources: NDArray[Any]) -> tuple[int, int]:
    """Sum and maximum of the distances from these nodes to all others."""
    total = longest = 0
    for at in range(0, len(sources), _BATCH):
        away = dijkstra(part, indices=sources[at : at + _BATCH], unweighted=True)
        total += int(away.sum())
        longest = max(longest, int(away.max()))
    return total, longest
