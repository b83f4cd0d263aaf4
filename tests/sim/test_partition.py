"""Two halves that were apart for so long that they forgot each other must find together again."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.membership.hyparview import HyParView
from epicast.sim import checks
from epicast.sim.faults import Partition
from epicast.sim.scenario import Scenario
from epicast.sim.world import World

APART_US, TOGETHER_US = 300_000_000, 120_000_000


def after_a_long_partition(seed: int) -> World:
    overrides: dict[str, Any] = {"membership": {"passive_size": 8}, "dissemination": {}}
    world = World(Scenario.load({"stack": "brisa", "nodes": 40, "overrides": overrides}), seed)
    for number in range(40):
        world.call_at(number * 10_000, world.join)
    world.run_until(20_000_000)
    world.publish(0, "", b"together")
    world.run_until(world.now_us + 3_000_000)
    cut = Partition(frozenset(range(20)))
    world.network.add_rule(cut)
    world.call_at(world.now_us + 5_000_000, world.publish, 0, "", b"apart")
    world.run_until(world.now_us + APART_US)
    forget_the_other_half(world)
    world.network.remove_rule(cut)
    world.run_until(world.now_us + TOGETHER_US)
    return world


def forget_the_other_half(world: World) -> None:
    """As it would come in time: whoever was asked and did not answer has gone from all passive views."""
    for node in world.up:
        members: Any = world.nodes[node].membership
        for view in (members.passive, members.contacts):
            for peer in [peer for peer in view if (peer < 20) != (node < 20)]:
                view.discard(peer)


@pytest.mark.parametrize("seed", range(5))
def test_the_halves_merge_and_the_cut_off_half_gets_what_it_missed(seed: int) -> None:
    world = after_a_long_partition(seed)
    assert checks.overlay(world) == []
    assert checks.trees(world) == []
    assert world.all_delivered()


def test_without_looking_for_lost_peers_they_would_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HyParView, "_probe_lost", lambda view: None)
    assert any(checks.overlay(after_a_long_partition(seed)) for seed in range(5))
