"""The bulk kernel of balls and bins gives what the event engine gives with the protocols themselves.

All processes know all others here, as the kernel's do. The event is published right after a round of its publisher and
goes out with the next one, from which its time counts; the engine's clock is looked at ten times a millisecond.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from epicast.core.balls_and_bins import fanout, rounds
from epicast.core.records import Kind
from epicast.dissemination.ball_messages import Ball
from epicast.sim.bulk.balls import PERIOD_US, spread
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.batch import Batch
from tests.support.alike import Numbers, differing, gathered

NODES, ENGINE_RUNS, BULK_RUNS = 100, 16, 500
SETTLED_US, STEP_US, LASTS_US = 1_500_000, 100, 5_000_000
BALLS = {"protocol": "balls", "fanout": fanout(NODES), "rounds": rounds(NODES), "period_us": PERIOD_US}


def summed_up(what: str, times_us: Any, sent: int) -> dict[str, float]:
    """Of all processes but the publisher."""
    return {f"half {what}": float(np.median(times_us)), f"all {what}": float(np.max(times_us)), "copies": sent}


def played(what: str, loss: float, seed: int) -> dict[str, float]:
    stack: dict[str, Any] = {"membership": {"protocol": "static"}, "dissemination": dict(BALLS)}
    if what != "first_us":
        stack["dissemination"]["clock"] = what.removesuffix("_us")
        stack["ordering"] = {"protocol": "epto"}
    network = {"transport": "datagram", "loss": loss}
    settings = {"stack": stack, "nodes": NODES, "latency": "quantiles planetlab-epto", "network": network}
    world = World(Scenario.load(settings), seed)
    nodes = [world.add_node() for _ in range(NODES)]
    for node in nodes:
        world.start(node, [other for other in nodes if other != node])
    world.run_until(SETTLED_US)
    return summed_up(what, *published(world))


def published(world: World) -> tuple[list[int], int]:
    """When the others deliver an event of process 0, and how many copies are sent."""
    balls: Any = world.nodes[0].dissemination
    before, times_us = balls.round, []

    def take(batch: Batch) -> None:
        chosen = (batch.kind == Kind.DELIVER) & (batch.node != 0)
        times_us.extend(batch.time_us[chosen].tolist())

    world.sinks.append(take)
    world.run_while(lambda: balls.round == before, STEP_US, world.now_us + 2 * PERIOD_US)
    goes_out_us = world.now_us + PERIOD_US
    world.publish(0, "t", b"x")
    world.run_until(world.now_us + LASTS_US)
    world.engine.flush()
    assert len(times_us) == NODES - 1
    return [time_us - goes_out_us for time_us in times_us], world.engine.sent[Ball][0]


@cache
def bulk(what: str, loss: float, *, go_on: bool = False) -> Numbers:
    runs = (spread(NODES, fanout(NODES), rounds(NODES), loss=loss, seed=seed, go_on=go_on) for seed in range(BULK_RUNS))
    return gathered(summed_up(what, getattr(run, what)[1:], run.sent) for run in runs)


@cache
def engine(what: str, loss: float) -> Numbers:
    return gathered(played(what, loss, seed) for seed in range(ENGINE_RUNS))


@pytest.mark.parametrize(
    ("what", "loss"), [("first_us", 0.0), ("first_us", 0.2), ("global_us", 0.0), ("logical_us", 0.2)]
)
def test_the_kernel_gives_what_the_engine_gives(what: str, loss: float) -> None:
    one, other = bulk(what, loss), engine(what, loss)
    assert differing(one, other) == set()
    # One run's copies vary by about 13 %, so the mean of 16 is known to about 3.3 %.
    assert np.mean(one["copies"]) == pytest.approx(np.mean(other["copies"]), rel=0.1)


def test_the_comparison_notices_what_is_different() -> None:
    assert differing(bulk("first_us", 0.0, go_on=True), engine("first_us", 0.0)) == {"copies"}
    assert "half first_us" in differing(bulk("first_us", 0.4), engine("first_us", 0.0))
