"""Cyclon while five percent of all processes are replaced eight times a second: half of what views name has gone.

Walks for a newcomer end at the first dead process, and its contacts live for a second: it must get in nevertheless.
"""

from __future__ import annotations

from random import Random

from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import SECOND
from tests.support.worlds import views

NODES, IMMUNE, ROUNDS, ROUND_US = 100, 50, 24, 125_000
SEEDS = range(6)
MEMBERSHIP = {"view_size": 40, "exchange_size": 20, "exchange_interval_us": ROUND_US}


def churned(seed: int) -> World:
    scenario = Scenario.load(
        {
            "stack": "cyclon-flood",
            "nodes": NODES,
            "latency": "quantiles planetlab-epto",
            "network": {"transport": "datagram"},
            "overrides": {"membership": MEMBERSHIP},
        }
    )
    world, rng = World(scenario, seed), Random(seed)
    for number in range(NODES):
        world.call_at(number * 10_000, world.join)
    world.run_until(11 * SECOND)
    for _ in range(ROUNDS):
        world.run_until(world.now_us + ROUND_US)
        for node in rng.sample([node for node in world.nodes if node >= IMMUNE], NODES // 20):
            world.crash(node)
            world.join()
    world.run_until(world.now_us + 10 * SECOND)
    return world


def test_every_newcomer_knows_somebody_alive_in_the_end() -> None:
    newcomers = 0
    for seed in SEEDS:
        left = views(churned(seed))
        newcomers += sum(node >= NODES for node in left)
        alone = [node for node, peers in left.items() if not left.keys() & set(peers)]
        assert not alone, f"churned({seed}) in {__name__}: {alone} know nobody"
    assert newcomers > 200
