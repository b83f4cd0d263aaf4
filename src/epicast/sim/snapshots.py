"""A world as tables: pictures of its overlays (who knows whom, who is whose parent), and its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from epicast.core.ids import FlowId
from epicast.sim.latency import LatencyConfig
from epicast.sim.population import Population
from epicast.sim.tree import TreeShape, shape
from epicast.stacks.node import Node

if TYPE_CHECKING:
    from epicast.trace.tables import Nodes, Snapshot

Parents = dict[FlowId, dict[int, int | None]]


def views(now_us: int, nodes: Mapping[int, Node]) -> Snapshot:
    """The neighbours of every process, with the measured round trips."""
    edges = [
        (node, peer, -1 if (rtt_us := part.membership.rtt_us(peer)) is None else rtt_us)
        for node, part in nodes.items()
        for peer in part.membership.peers()
    ]
    return _snapshot(now_us, "active", "", edges)


def trees(now_us: int, nodes: Mapping[int, Node]) -> list[Snapshot]:
    """From child to parent, of each flow; nothing where the stack makes no trees."""
    flows = sorted(parents_of(nodes).items())
    return [_snapshot(now_us, "tree", f"{flow[0]}/{flow[1]}", _edges(parents)) for flow, parents in flows]


def first_tree(nodes: Mapping[int, Node]) -> TreeShape | None:
    """The shape of the first flow's tree, in which every process should be."""
    flows = parents_of(nodes)
    if not flows:
        return None
    flow = min(flows)
    assert isinstance(flow[0], int)
    return shape(flow[0], {node: flows[flow].get(node) for node in nodes})


def parents_of(nodes: Mapping[int, Node]) -> Parents:
    """By flow, then by process: None for one that knows the flow and has no parent in it."""
    flows: Parents = {}
    for node, part in nodes.items():
        tell = getattr(part.dissemination, "parents", None)
        for flow, parent in (tell() if tell is not None else {}).items():
            flows.setdefault(flow, {})[node] = parent
    return flows


def _edges(parents: Mapping[int, int | None]) -> list[tuple[int, int, int]]:
    return [(node, parent, -1) for node, parent in parents.items() if parent is not None]


def processes(population: Population, latency: LatencyConfig, now_us: int) -> Nodes:
    """Every process that ever joined, with the place where the latency model puts it. One that is saying goodbye has
    left: nothing is owed to it any more."""
    from epicast.trace.tables import Nodes

    numbers = range(len(population))
    ended_us = np.array(population.ended_us, np.int64)
    leaving = (ended_us < 0) & ~population.up_mask()
    return Nodes(
        node=np.arange(len(population), dtype=np.int64),
        name=[str(node) for node in numbers],
        area=[latency.place_of(node) for node in numbers],
        joined_us=np.array(population.joined_us, np.int64),
        ended_us=np.where(leaving, now_us, ended_us),
        how=["leave" if leaving[node] else population.how[node] for node in numbers],
    )


def _snapshot(now_us: int, overlay: str, flow: str, edges: Iterable[tuple[object, object, int]]) -> Snapshot:
    from epicast.trace.tables import Snapshot

    columns = np.array(list(edges), np.int64).reshape(-1, 3)
    return Snapshot(now_us, overlay, flow, columns[:, 0], columns[:, 1], columns[:, 2])
