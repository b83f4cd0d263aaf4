"""Whole worlds for claims about overlays that grew by themselves, and what to look at in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from epicast.core.records import Kind, Level
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.batch import Batch
from tests.support.overlays import MS, SECOND

JOIN_EVERY = 10 * MS


def grown(
    stack: str, nodes: int, *, seed: int = 1, settle_us: int = 40 * SECOND, level: Level = Level.OFF, **roles: Any
) -> World:
    """Processes join one after the other, then the overlay has time to settle."""
    world = joining(stack, nodes, seed=seed, level=level, **roles)
    world.run_until(nodes * JOIN_EVERY + settle_us)
    return world


def joining(stack: str, nodes: int, *, seed: int = 1, level: Level = Level.OFF, **roles: Any) -> World:
    """Processes will join one after the other once the world runs; `roles` override settings of the stack."""
    world = World(Scenario(stack=stack, nodes=nodes, overrides=roles), seed, level=level)
    for number in range(nodes):
        world.call_at(number * JOIN_EVERY, world.join)
    return world


def stream(world: World, messages: int, node: int = 0, every_us: int = SECOND // 5) -> None:
    for number in range(messages):
        world.call_at(world.now_us + number * every_us, world.publish, node, "t", b"payload")
    world.run_until(world.now_us + messages * every_us + 5 * SECOND)


def views(world: World) -> dict[int, list[int]]:
    return {node: list(part.membership.peers()) for node, part in world.nodes.items()}  # type: ignore[misc]


def parents(world: World, flow: tuple[int, int] = (0, 0)) -> dict[int, int | None]:
    """Of every process but the source."""
    return {
        node: part.dissemination.parents().get(flow)  # type: ignore[attr-defined]
        for node, part in world.nodes.items()
        if node != flow[0]
    }


def reached(neighbours: Mapping[int, list[int]], start: int) -> set[int]:
    """The processes to which links lead from there."""
    found, todo = {start}, [start]
    while todo:
        for peer in neighbours.get(todo.pop(), ()):
            if peer in neighbours and peer not in found:
                found.add(peer)
                todo.append(peer)
    return found


def degrees(neighbours: Mapping[int, list[int]]) -> list[int]:
    return [len(peers) for peers in neighbours.values()]


class Rows:
    """Counts rows of the trace by kind and process."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.of: Counter[tuple[Kind, int]] = Counter()
        world.sinks.append(self._take)

    def _take(self, batch: Batch) -> None:
        self.of.update((Kind(kind), node) for kind, node in zip(batch.kind.tolist(), batch.node.tolist(), strict=True))

    def by_node(self, kind: Kind) -> dict[int, int]:
        self.world.engine.flush()
        return {node: self.of[kind, node] for node in self.world.nodes}
