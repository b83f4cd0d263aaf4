"""Whole systems of EpTO that grow, shrink, overflow and are in too much of a hurry."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from epicast.core.balls_and_bins import fanout, rounds
from epicast.core.records import Kind, Level
from epicast.dissemination.balls import Balls
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.batch import Batch
from tests.support.delivered import Delivered

SECOND = 1_000_000
C = 1.25


def system(nodes: int, seed: int = 1, stack: str = "epto", **more: Any) -> tuple[World, Delivered]:
    settings = {"stack": stack, "nodes": nodes, "latency": "uniform 10ms 100ms", **more}
    world = World(Scenario.load(settings), seed, level=Level.DELIVERIES)
    return world, Delivered(world)


def join(world: World, count: int) -> None:
    for number in range(count):
        world.call_at(world.now_us + number * 10_000, world.join)


def balls(world: World) -> list[Balls]:
    return [part.dissemination for part in world.nodes.values() if isinstance(part.dissemination, Balls)]


def require_parameters(world: World, nodes: int) -> None:
    """Within what an estimate that is off by half would give: a round or so, a target or so."""
    for each in balls(world):
        assert rounds(nodes / 2, C) <= each.ttl <= rounds(nodes * 2, C)
        assert fanout(nodes / 2) <= each.fanout <= fanout(nodes * 2)
    assert len({(each.ttl, each.fanout) for each in balls(world)}) == 1  # all alike


def publish(world: World, count: int) -> None:
    for number in range(count):
        node = world.up[number * 7 % len(world.up)]
        world.call_at(world.now_us + number * 20_000, world.publish, node, "t", b"payload")
    world.run_until(world.now_us + count * 20_000 + 8 * SECOND)


def test_rounds_and_fanout_follow_the_size_of_the_system_without_a_restart() -> None:
    world, seen = system(30)
    join(world, 30)
    world.run_until(12 * SECOND)
    require_parameters(world, 30)
    publish(world, 10)
    join(world, 150)
    world.run_until(world.now_us + 15 * SECOND)
    require_parameters(world, 180)
    publish(world, 10)
    assert seen.holes() == 0
    for node in list(world.up)[20:160]:
        world.crash(node)
    world.run_until(world.now_us + 45 * SECOND)
    require_parameters(world, 40)
    publish(world, 10)
    assert seen.holes() == 0
    assert seen.knotted() == []


@pytest.mark.parametrize("knows_the_time", [True, False])
def test_a_newcomer_that_does_not_wait_for_the_time_is_heard_by_nobody(knows_the_time: bool) -> None:
    """E-E14, and what it would be like without it."""
    world, seen = system(20)
    join(world, 20)
    world.run_until(8 * SECOND)
    publish(world, 30)
    newcomer = world.join()
    part = world.nodes[newcomer].dissemination
    assert isinstance(part, Balls)
    part.met = not knows_the_time
    world.publish(newcomer, "t", b"hello")
    world.run_until(world.now_us + 10 * SECOND)
    world.engine.flush()
    hello = (newcomer, 0)
    assert hello in seen.order[newcomer]
    heard = [node for node in world.up if hello in seen.order[node]]
    assert len(heard) == (21 if knows_the_time else 1)


def test_publishers_wait_when_balls_are_full_and_nothing_is_lost() -> None:
    """Sixty publishers want several times as much as may be under way."""
    small = {"dissemination": {"round_events_max": 512}}
    load = {"messages": 600, "rate": 600.0, "sources": 60, "payload_bytes": 20}
    world, seen = system(60, overrides=small, workload=load, drain="60s")
    held: list[int] = []
    for at in range(20):
        world.call_at(17 * SECOND + at * 100_000, lambda: held.append(sum(world.held_back.values())))
    summary = world.run()
    assert max(held) > 50
    assert (summary.messages, summary.missing, summary.gaps) == (600, 0, 0)
    assert seen.knotted() == []
    assert summary.nodes["up_at_end"] == 60


def test_large_payloads_hold_publishers_back_too() -> None:
    small = {"dissemination": {"round_bytes_max": 20_000}}
    load = {"messages": 100, "rate": 200.0, "sources": 20, "payload_bytes": 1000}
    world, _ = system(20, overrides=small, workload=load, drain="60s")
    summary = world.run()
    assert (summary.messages, summary.missing, summary.gaps) == (100, 0, 0)
    assert summary.virtual_s > 18  # of which the stream alone would take half a second


def test_in_too_much_of_a_hurry_events_are_late_and_corrections_make_up_for_it() -> None:
    """Rounds of 15 ms for latencies of 125: holes, unless what is late is handed over as a correction."""
    missing = {}
    for late in ("drop", "correct"):
        overrides = {"dissemination": {"period": "15ms", "clock": "global"}, "ordering": {"late": late}}
        load = {"messages": 60, "rate": 60.0, "sources": 30, "payload_bytes": 8}
        world, seen = system(
            30,
            overrides=overrides,
            workload=load,
            latency="quantiles planetlab-epto",
            network={"transport": "datagram"},
            drain="5s",
        )
        corrected: Counter[int] = Counter()

        def take(batch: Batch, corrected: Counter[int] = corrected) -> None:
            corrected.update(batch.node[np.flatnonzero(batch.kind == Kind.CORRECTION)].tolist())

        world.sinks.append(take)
        world.run()
        world.run_until(world.now_us + 10 * SECOND)
        missing[late] = seen.holes()
        assert seen.knotted() == []
        assert missing[late] > 20
        assert sum(corrected.values()) == (missing[late] if late == "correct" else 0)
