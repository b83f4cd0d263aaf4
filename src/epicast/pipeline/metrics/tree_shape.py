"""The shape of dissemination trees, from one picture of parents and neighbours. Pure: edges in, counts out.

Where processes have several parents, depth is the longest way from the root, as the documents on such structures have
it; in a tree there is only one way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import rustworkx as rx
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from epicast.core.ids import NOBODY

Edge = tuple[int, int]
View = tuple[int, int, int]  # a process, a neighbour, and the round trip between them in us; -1 if it is not known


@dataclass
class Shapes:
    """Of all trees together: each process counts once for each tree."""

    trees: int = 0
    depth: Counter[int] = field(default_factory=Counter)  # of all but the root
    out_degree: Counter[int] = field(default_factory=Counter)  # children, of those in the tree
    orphans: int = 0  # processes without a way to the root
    stretch: list[float] = field(default_factory=list)  # depth over distance in the overlay
    rtt_us: list[int] = field(default_factory=list)  # sum of round trips on the way from the root, where all are known
    children: Counter[int] = field(default_factory=Counter)  # by process, over all trees
    leaf_in: Counter[int] = field(default_factory=Counter)  # by process: trees in which it has no child


def shapes(up: Iterable[int], roots: Mapping[str, int], parents: Mapping[str, list[Edge]], views: list[View]) -> Shapes:
    """`parents` has the edges from child to parent of each flow, `roots` its source where that is known; `views` the
    edges of the overlay, from each process to those to whom it sends."""
    found = Shapes(trees=len(parents))
    places = {node: place for place, node in enumerate(sorted(set(up)))}
    near = [(places[a], places[b], rtt_us) for a, b, rtt_us in views if a in places and b in places]
    overlay = _matrix(len(places), [(a, b, 1) for a, b, _ in near])
    rtts = {(a, b): max(1, rtt_us) for a, b, rtt_us in near if rtt_us >= 0}
    for flow, edges in sorted(parents.items()):
        root = places.get(roots.get(flow, NOBODY))
        links = {(places[parent], places[child]) for child, parent in edges if child in places and parent in places}
        if root is None:
            found.orphans += len(places)
        else:
            _add_tree(found, len(places), root, links, overlay)
            found.rtt_us += _round_trips(root, len(places), links, rtts)
    return found


def _add_tree(found: Shapes, size: int, root: int, links: set[Edge], overlay: csr_matrix) -> None:
    depths = depths_below(root, size, links)
    degree = Counter(parent for parent, child in links if child != root)
    found.orphans += size - len(depths)
    for place, depth in depths.items():
        found.out_degree[degree[place]] += 1
        found.children[place] += degree[place]
        found.leaf_in[place] += not degree[place]
        if place != root:
            found.depth[depth] += 1
    found.stretch += _stretch(root, depths, overlay)


def depths_below(root: int, size: int, links: Iterable[Edge]) -> dict[int, int]:
    """Of the root and all that can be reached from it, the length of the longest way; of the shortest one if there is
    a cycle among them, since then there is no longest."""
    graph: rx.PyDiGraph[int, None] = rx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(range(size))
    graph.add_edges_from_no_data([(parent, child) for parent, child in links if child != root])
    below = sorted({root, *rx.descendants(graph, root)})
    part = graph.subgraph(below)
    return {part[place]: depth for depth, level in enumerate(_levels(part, below.index(root))) for place in level}


def _levels(graph: rx.PyDiGraph[int, None], root: int) -> Sequence[Sequence[int]]:
    try:
        return rx.topological_generations(graph)
    except rx.DAGHasCycle:
        return rx.bfs_layers(graph, [root])


def _stretch(root: int, depths: Mapping[int, int], overlay: csr_matrix) -> list[float]:
    nearest = dijkstra(overlay, indices=root, unweighted=True)
    known = (place for place in depths if place != root and np.isfinite(nearest[place]))
    return [float(depths[place] / nearest[place]) for place in known]


def _round_trips(root: int, size: int, links: set[Edge], rtts: Mapping[Edge, int]) -> list[int]:
    """Each child has measured the round trip to its parent."""
    known = [(parent, child, rtts[child, parent]) for parent, child in sorted(links) if (child, parent) in rtts]
    away = dijkstra(_matrix(size, known), indices=root)
    return [int(us) for place, us in enumerate(away) if place != root and np.isfinite(us)]


def _matrix(size: int, edges: list[tuple[int, int, int]]) -> csr_matrix:
    rows, columns, weights = np.array(sorted(set(edges)), np.int64).reshape(-1, 3).T
    return csr_matrix((weights, (rows, columns)), shape=(size, size))
