"""Trees over hours: what a message costs while the overlay keeps changing its links, and how flows end.

Views keep refreshing themselves here, as they do for users, and nobody comes or goes but the source. EPICAST_SOAK=1
takes an hour of 100 and of 1,000 processes with three seeds.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from epicast.core.records import Kind, Level
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import MS, SECOND
from tests.support.worlds import grown

SOAK = os.environ.get("EPICAST_SOAK") == "1"
MINUTE = 60 * SECOND
NODES, SEEDS, MINUTES = ((100, 1_000), range(3), 60) if SOAK else ((100,), range(1), 12)
COPIES = 1.05  # for each delivery, from the second message of a flow on
FORGET = 600 * SECOND
FLOW = (0, 0)
every_size = pytest.mark.parametrize("nodes", NODES)
every_seed = pytest.mark.parametrize("seed", SEEDS)


class Costs:
    """Copies for each delivery since the last time that it was asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.before = self._counts()

    def _counts(self) -> tuple[int, int]:
        counts = self.world.engine.counts
        return counts[Kind.DELIVER] - counts[Kind.PUBLISH], counts[Kind.DUPLICATE]

    def since(self) -> float:
        now, before = self._counts(), self.before
        self.before = now
        delivered = now[0] - before[0]
        return (delivered + now[1] - before[1]) / delivered


def publish(world: World, node: int, topic: str, messages: int, every_us: int) -> None:
    for number in range(messages):
        world.call_at(world.now_us + number * every_us, world.publish, node, topic, b"payload")


def reused(nodes: int, seed: int) -> World:
    """Nine publish on the tree of process 0, which is silent itself."""
    world = grown("brisa", nodes, seed=seed + 1, dissemination={"reuse_depth": 64})
    world.publish(0, "root", b"payload")
    world.run_until(world.now_us + 5 * SECOND)
    for publisher in range(1, 10):
        world.publish(publisher, f"topic {publisher}", b"payload")
    world.run_until(world.now_us + 5 * SECOND)
    assert flows(world) == {FLOW}
    return world


def flows(world: World) -> set[Any]:
    return {flow for node in world.nodes.values() for flow in node.dissemination.flows}  # type: ignore[attr-defined]


def cost_of_last_minutes(world: World, minutes: int) -> float:
    """Of the last ten of them, in which the nine publish once in nine seconds each."""
    for publisher in range(1, 10):
        publish(world, publisher, f"topic {publisher}", minutes * 60 // 9, 9 * SECOND)
    world.run_until(world.now_us + (minutes - 10) * MINUTE)
    costs = Costs(world)
    world.run_until(world.now_us + 10 * MINUTE)
    return costs.since()


@every_size
@every_seed
def test_a_tree_that_others_publish_on_stays_a_tree(nodes: int, seed: int) -> None:
    world = reused(nodes, seed)
    assert cost_of_last_minutes(world, MINUTES) <= COPIES
    assert flows(world) == {FLOW}


@every_size
@every_seed
def test_publishers_on_a_tree_that_lost_its_source_move_to_another_tree(nodes: int, seed: int) -> None:
    world = reused(nodes, seed)
    world.crash(0)
    assert cost_of_last_minutes(world, MINUTES) <= COPIES
    assert FLOW not in flows(world)
    assert flows(world) != set()


@every_size
@every_seed
@pytest.mark.parametrize("every", [1, 10, 60, 300])
def test_a_stream_costs_the_same_however_rare_its_messages_are(nodes: int, seed: int, every: int) -> None:
    world = grown("brisa", nodes, seed=seed + 1)
    world.publish(0, "t", b"payload")
    world.run_until(world.now_us + 5 * SECOND)
    costs = Costs(world)
    minutes = MINUTES if SOAK else max(2, every // 15)
    publish(world, 0, "t", minutes * 60 // every, every * SECOND)
    world.run_until(world.now_us + minutes * MINUTE)
    assert costs.since() <= COPIES


# Ends


def holders(world: World) -> int:
    return sum(FLOW in node.dissemination.flows for node in world.nodes.values())  # type: ignore[attr-defined]


def cut_off(world: World) -> int:
    """Processes that would say that they have no way to the source."""
    spreads: list[Any] = [node.dissemination for node in world.nodes.values()]
    return sum(spread.is_cut_off(flow) for spread in spreads for flow in spread.flows.values())


def published_once(nodes: int, seed: int) -> World:
    world = grown("brisa", nodes, seed=seed + 1)
    world.publish(0, "t", b"payload")
    world.run_until(world.now_us + 20 * SECOND)
    assert holders(world) == nodes
    return world


@every_size
@every_seed
@pytest.mark.parametrize("how", ["crash", "leave"])
def test_the_flow_of_a_source_that_is_gone_ends_everywhere(nodes: int, seed: int, how: str) -> None:
    world = published_once(nodes, seed)
    (world.crash if how == "crash" else world.leave)(0)
    gone_us = world.now_us
    world.run_until(gone_us + MINUTE)
    while world.now_us < gone_us + FORGET // 2:
        world.run_until(world.now_us + 5 * SECOND)
        assert cut_off(world) == 0, "for a minute it may look as if there were another way"
    newcomers = [world.join() for _ in range(5)]
    world.run_until(gone_us + FORGET + MINUTE)
    assert holders(world) == 0
    assert all(node in world.nodes for node in newcomers)
    world.run_until(world.now_us + 3 * MINUTE)
    assert holders(world) == 0


@every_size
@every_seed
def test_a_source_that_is_silent_but_up_keeps_its_flow(nodes: int, seed: int) -> None:
    world = published_once(nodes, seed)
    world.run_until(world.now_us + FORGET + 5 * MINUTE)
    assert holders(world) == nodes
    assert cut_off(world) == 0
    costs = Costs(world)
    world.publish(0, "t", b"payload")
    world.run_until(world.now_us + 5 * SECOND)
    assert costs.since() == 1.0


def test_many_trees_are_told_of_by_turns_and_none_is_taken_for_dead() -> None:
    """Fifteen keep-alives tell of all flows: a sign of life takes longer to get everywhere, and is still believed."""
    settings = {"stack": "brisa", "nodes": 30, "overrides": {"dissemination": {"positions_max": 4}}}
    world = World(Scenario.load(settings), 3, level=Level.OFF)
    for number in range(30):
        world.call_at(number * 10 * MS, world.join)
    world.run_until(30 * SECOND)
    for topic in range(60):
        world.publish(topic % 4, f"topic {topic}", b"payload")
    world.run_until(world.now_us + FORGET + 3 * MINUTE)
    spreads: list[Any] = [node.dissemination for node in world.nodes.values()]
    assert all(len(spread.flows) == 60 for spread in spreads)
    assert all(flow.parent is not None for s in spreads for flow in s.flows.values() if flow.root != s.env.me)
    stale = [f.id for s in spreads for f in s.flows.values() if s.life.is_stale(f.age(world.now_us))]
    assert stale == []
