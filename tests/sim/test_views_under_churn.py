"""HyParView, Scamp, Cyclon and CLON while processes come, leave and crash and messages are lost: a hundred seeds each.

A minute after the last of it everyone must be connected, know somebody alive, and have forgotten the dead.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from epicast.sim import checks
from epicast.sim.network import NetworkConfig
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import SECOND, is_connected
from tests.support.worlds import views

SEEDS, BATCH, NODES = 100, 25, 30
SCAMP = {"lease_us": 30 * SECOND, "heartbeat_us": SECOND, "isolated_us": 4 * SECOND}
AREAS = "areas 3 1ms 40ms"
SETTINGS: dict[str, dict[str, Any]] = {
    "flood": {"shuffle_interval_us": 2 * SECOND},
    "scamp-flood": SCAMP,
    "clon-balance-flood": {**SCAMP, "balance_interval_us": 4 * SECOND},
    "cyclon-flood": {"view_size": 8, "exchange_size": 4, "exchange_interval_us": SECOND, "reply_timeout_us": SECOND},
}


def stormy(stack: str, seed: int) -> World:
    network = NetworkConfig(loss=0.02)
    overrides = {"membership": SETTINGS[stack]}
    latency = AREAS if stack.startswith("clon") else "uniform 10ms 100ms"
    scenario = Scenario(stack=stack, nodes=NODES, network=network, latency=latency, overrides=overrides)
    world, rng = World(scenario, seed), Random(seed)
    for number in range(NODES):
        world.call_at(number * SECOND // 20, world.join)
    world.run_until(15 * SECOND)
    for _ in range(20):
        world.run_until(world.now_us + int(rng.random() * 2 * SECOND))
        up = list(world.nodes)
        what = rng.choice((world.crash, world.crash, world.leave, world.join))
        if what == world.join or len(up) <= NODES // 2:
            world.join()
        else:
            what(rng.choice(up))
    for _ in range(15):
        look_up_again(world, rng)
        world.run_until(world.now_us + 5 * SECOND)
    return world


def look_up_again(world: World, rng: Random) -> None:
    """Processes that know nobody who leads to the others look up their seeds' names again, as live nodes do."""
    for node in checks.stranded(world):
        world.nodes[node].membership.meet(rng.choice([peer for peer in world.up if peer != node]))


def troubles(stack: str, seed: int) -> list[str]:
    left = views(stormy(stack, seed))
    both: dict[int, list[int]] = {node: [] for node in left}
    dead = 0
    for node, peers in left.items():
        for peer in peers:
            if peer in both:
                both[node].append(peer)
                both[peer].append(node)
            else:
                dead += 1
    found = [] if is_connected(both) else ["not connected"]
    alone = sum(not any(peer in left for peer in peers) for peers in left.values())
    found += [f"{alone} know nobody alive"] if alone else []
    return found + ([f"{dead} entries of the dead"] if dead > len(left) // 10 else [])


@pytest.mark.parametrize("stack", SETTINGS)
@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_views_come_to_rest_whole(stack: str, first: int) -> None:
    found = {seed: wrong for seed in range(first, first + BATCH) if (wrong := troubles(stack, seed))}
    assert not found, f"stormy({stack!r}, seed) in {__name__}: {found}"
