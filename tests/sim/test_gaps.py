"""Every hole is a gap: what a process is owed and does not get it tells as lost, and nothing else; the last messages of
a source included. Over disseminators that send nothing again, and one that does."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.records import Level
from epicast.sim.history import History
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import SECOND

# Of three datagrams in ten that are lost some are those that tell heads: mostly it takes a third of that.
TOLD_US = 60 * SECOND  # after a source fell silent, or after processes that stood still or were cut off are back
FEW_HOLES = ("simple-gossip", "cyclon-flood")
HEADS = {"gaps": {"protocol": "heads"}}
STACKS: dict[str, dict[str, Any]] = {
    "epto": {"stack": "epto", "overrides": {"dissemination": {"c": 0.1, "fanout": 2, "rounds": 4}}},
    "spontaneous": {"stack": "spontaneous", "overrides": {**HEADS, "dissemination": {"fanout": 2, "rounds": 4}}},
    "flood": {"stack": "flood", "overrides": HEADS},
    "clon-flood": {"stack": "clon-flood", "overrides": HEADS},
    "scamp-flood": {"stack": "scamp-flood", "overrides": HEADS},
    "cyclon-flood": {"stack": "cyclon-flood", "overrides": HEADS},
    "simple-gossip": {"stack": "simple-gossip", "overrides": HEADS | {"dissemination": {"recent_messages": 4}}},
    "clon-emergent": {"stack": "clon-emergent", "overrides": HEADS},
}
BASE: dict[str, Any] = {
    "nodes": 30,
    "latency": "uniform 5ms 50ms",
    "network": {"transport": "datagram", "loss": 0.3},
    "warmup": "12s",
    "workload": {"messages": 200, "rate": 20, "sources": 5},
    "drain": "0s",
}
FAULTS: dict[str, list[dict[str, Any]]] = {
    "loss": [],
    "processes that stand still": [{"kind": "pause", "at": "1s", "until": "15s", "fraction": 0.2}],
    "a partition": [{"kind": "partition", "at": "6s", "until": "14s", "fraction": 0.3}],
}


def duty_us(world: World, node: int) -> int:
    gaps = world.nodes[node].gaps
    assert gaps is not None
    return gaps.begun_us if gaps.begun else 1 << 62


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stack", STACKS)
def test_every_hole_is_told_and_nothing_else(stack: str, fault: str) -> None:
    scenario = Scenario.load({**BASE, **STACKS[stack], "fault": FAULTS[fault]})
    world = World(scenario, 1, level=Level.DELIVERIES)
    history = History(world)
    world.run()
    world.run_until(world.now_us + TOLD_US)
    world.engine.flush()
    silent = history.silent(lambda node: duty_us(world, node))
    assert not silent, world.replay
    assert not history.false_gaps(), world.replay
    assert not history.wrong, world.replay
    if stack not in FEW_HOLES:
        assert history.holes() > 20
