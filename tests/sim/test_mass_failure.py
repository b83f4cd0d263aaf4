"""Four of five processes die at once: all survivors that still know somebody heal."""

from __future__ import annotations

from epicast.sim import checks
from epicast.sim.scenario import Scenario
from epicast.sim.world import World

NODES, KILLED = 10_000, 8_000
HEAL_US = 60_000_000


def test_after_losing_eighty_percent_all_survivors_that_know_a_live_peer_deliver() -> None:
    overrides = {"membership": {"keep_alive_us": 2_000_000, "silence_us": 7_000_000}}
    scenario = Scenario.load({"stack": "brisa", "nodes": NODES, "overrides": overrides})
    world = World(scenario, seed=1, replay="pytest tests/sim/test_mass_failure.py")
    for number in range(NODES):
        world.call_at(number * 1_000, world.join)
    world.run_until(NODES * 1_000 + 30_000_000)
    world.publish(0, "", b"before")
    world.run_until(world.now_us + 3_000_000)
    assert world.all_delivered()

    for node in world.stream("killer").sample(range(1, NODES), KILLED):
        world.crash(node)
    stranded = checks.stranded(world)
    world.run_until(world.now_us + HEAL_US)
    world.publish(0, "", b"after")
    world.run_until(world.now_us + 10_000_000)

    world.engine.flush()
    survivors = [node for node in world.up if node not in stranded]
    missed = {node for _, _, node in world.collector.holes(NODES)} & set(survivors)
    assert len(world.up) == NODES - KILLED
    assert 1 - len(missed) / len(survivors) >= 0.9999
