"""Processes that know where their neighbours are: in a unit test, and as worlds over a given graph of areas.

Process i is in area i % areas, as the latency model `areas` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Annotated, Any

import msgspec

from epicast.core.chance import sample
from epicast.core.config import Config
from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.records import Kind, Level
from epicast.membership.static import Static, StaticConfig
from epicast.sim.network import NetworkConfig
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.stacks.stack import PROTOCOLS
from epicast.trace.batch import Batch
from tests.support.overlays import MS, SECOND

AREAS = 5
PAYLOADS = ("Msg", "Copy", "Rumor", "Gossip")


class Members:
    """The membership below a dissemination protocol: neighbours and their distances as the test says."""

    def __init__(self, near: Iterable[NodeId] = (), far: Mapping[NodeId, int] | Iterable[NodeId] = ()) -> None:
        self.distances: dict[NodeId, int] = dict.fromkeys(near, 0)
        self.distances |= far if isinstance(far, Mapping) else dict.fromkeys(far, 1)
        self.rng = Random(1)

    def peers(self) -> Sequence[NodeId]:
        return list(self.distances)

    def sample(self, count: int) -> list[NodeId]:
        return sample(self.rng, list(self.distances), count)

    def distance(self, peer: NodeId) -> int:
        return self.distances.get(peer, 16)


class PlacedConfig(Config):
    areas: Annotated[int, msgspec.Meta(ge=1)] = AREAS


class Placed(Static):
    """A fixed overlay whose processes know the areas of their neighbours, and nothing of others."""

    __slots__ = ("areas",)

    def __init__(self, env: Env, config: PlacedConfig) -> None:
        super().__init__(env, StaticConfig())
        self.areas = config.areas

    def distance(self, peer: NodeId) -> int:
        if peer not in self._peers:
            return 16
        return int(peer) % self.areas != int(self.env.me) % self.areas


def graph(nodes: int, near: int, far: int, seed: int = 1, areas: int = AREAS) -> list[list[int]]:
    """Everyone knows so many processes of its area and so many outside. Arcs are directed, as those of CLON are, and
    everyone has as many to it as from it."""
    rng = Random(seed)
    views: list[dict[int, None]] = [{} for _ in range(nodes)]
    for area in range(areas):
        inside = list(range(area, nodes, areas))
        for _ in range(near):
            _match(views, inside, list(inside), rng)
    everyone = list(range(nodes))
    for _ in range(far):
        _match(views, everyone, list(everyone), rng, lambda a, b: a % areas != b % areas)
    return [list(view) for view in views]


def _match(
    views: list[dict[int, None]], whose: list[int], pool: list[int], rng: Random, fits: Any = lambda a, b: True
) -> None:
    rng.shuffle(pool)
    for node in whose:
        at = next(
            (i for i in range(len(pool)) if pool[i] != node and pool[i] not in views[node] and fits(node, pool[i])),
            None,
        )
        if at is not None:
            views[node][pool.pop(at)] = None


def areas_world(
    views: Sequence[Sequence[int]],
    settings: Mapping[str, Any] | None = None,
    *,
    protocol: str = "emergent",
    latency: str = "areas 5 1ms 50ms",
    seed: int = 1,
    level: Level = Level.FULL,
    engine: str = "auto",
    **network: Any,
) -> World:
    """All are up and know their neighbours; nothing has been published yet."""
    stack = {"membership": {"protocol": "static"}, "dissemination": {"protocol": protocol, **(settings or {})}}
    static = PROTOCOLS["membership"]["static"]
    PROTOCOLS["membership"]["static"] = (__name__, "Placed", "PlacedConfig")
    try:
        scenario = Scenario(stack=stack, nodes=len(views), latency=latency, network=NetworkConfig(**network))
        world = World(scenario, seed, engine, level=level)
    finally:
        PROTOCOLS["membership"]["static"] = static
    nodes = [world.add_node() for _ in views]
    for node, peers in zip(nodes, views, strict=True):
        world.start(node, peers)
    world.run_until(SECOND)
    return world


class Traffic:
    """Counts what arrives, by the name of the message and whether it came from another area."""

    def __init__(self, world: World, areas: int = AREAS) -> None:
        self.world, self.areas = world, areas
        self.received: dict[tuple[str, bool], int] = {}
        world.sinks.append(self._take)

    def _take(self, batch: Batch) -> None:
        names = self.world.names
        kinds = (int(Kind.RECEIVE), int(Kind.DUPLICATE))
        columns = (batch.kind.tolist(), batch.node.tolist(), batch.peer.tolist(), batch.detail.tolist())
        for kind, node, peer, detail in zip(*columns, strict=True):
            if kind in kinds:
                key = names[detail], node % self.areas != peer % self.areas
                self.received[key] = self.received.get(key, 0) + 1

    def of(self, *names: str, far: bool) -> int:
        self.world.engine.flush()
        return sum(self.received.get((name, far), 0) for name in names)

    def payloads(self, *, far: bool) -> int:
        return self.of(*PAYLOADS, far=far)


def publish(world: World, messages: int, every_us: int = 500 * MS, rest_us: int = 5 * SECOND) -> None:
    """Everyone in turn."""
    for number in range(messages):
        world.call_at(world.now_us + number * every_us, world.publish, number % len(world.nodes), "t", b"payload")
    world.run_until(world.now_us + messages * every_us + rest_us)
