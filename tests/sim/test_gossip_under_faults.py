"""Gossip and Emergent while processes come, leave, crash and pause, messages are lost and the network falls apart.

Everything is drawn from the seed. When the faults are over everyone that stayed must have everything, once. A newcomer
all of whose contacts died knows nobody, and nobody knows it: it can get nothing, and that is up to the membership. So
is an overlay that stays in two parts.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.worlds import views

SEEDS, BATCH, NODES, SECONDS = 16, 8, 40, 8
STACKS: dict[str, str | dict[str, Any]] = {
    "simple-gossip": "simple-gossip",
    "Emergent over Scamp": {
        "membership": {"protocol": "scamp", "lease": "30s", "heartbeat": "1s", "isolated": "4s"},  # heals quickly
        "dissemination": {"protocol": "emergent"},
    },
    "lazy push over HyParView": {
        "membership": {"protocol": "hyparview"},
        "dissemination": {"protocol": "gossip", "push": "lazy", "fanout": 3, "pull": "lazy"},
    },
    "nothing but pulling, over Cyclon": {
        "membership": {"protocol": "cyclon"},
        "dissemination": {"protocol": "gossip", "push": "none", "pull": "eager", "pull_interval": "500ms"},
    },
}
LASTING = ("partition", "loss", "pause", "clog", "isolate")


def stormy(stack: str, seed: int, **overrides: Any) -> Scenario:
    rng = Random(f"{stack} {seed}")
    return Scenario.load(
        {
            "stack": STACKS[stack],
            "overrides": overrides,
            "nodes": NODES,
            "latency": "areas 4 1ms 40ms",
            "network": {"transport": rng.choice(("tcp", "datagram")), "loss": rng.choice((0.0, 0.01, 0.02))},
            "warmup": "10s",
            "workload": {"messages": 2 * SECONDS, "rate": 2, "sources": rng.choice((1, 3))},
            "churn": rng.choice(("", "const churn 10% each 5s", "const churn 10% each 5s leave")),
            "fault": [fault(rng) for _ in range(rng.randint(1, 3))],
            "drain": "90s",
        }
    )


def fault(rng: Random) -> dict[str, Any]:
    kind, at = rng.choice((*LASTING, "crash", "reset")), rng.uniform(0, SECONDS / 2)
    found: dict[str, Any] = {"kind": kind, "at": f"{at:.3f}s"}
    if kind in LASTING:
        found["until"] = f"{at + rng.uniform(0.5, 6):.3f}s"
    if kind == "loss":
        return found | {"probability": rng.choice((0.01, 0.05, 0.2))}
    if kind == "clog":
        found["delay"] = f"{rng.uniform(0.2, 3):.3f}s"
    return found | ({"count": 1} if kind == "isolate" else {"fraction": rng.choice((0.1, 0.2, 0.3))})


def play(stack: str, seed: int, **overrides: Any) -> World:
    world = World(stormy(stack, seed, **overrides), seed)
    world.run()
    return world


def cut_off(world: World) -> list[int]:
    """Whom no chain of acquaintances, in whichever direction, joins with the first process."""
    both: dict[int, list[int]] = {node: [] for node in world.nodes}
    for node, peers in views(world).items():
        for peer in peers:
            if peer in both:
                both[node].append(peer)
                both[peer].append(node)
    reached, todo = {0: None}, [0]
    while todo:
        news = [peer for peer in both[todo.pop()] if peer not in reached]
        reached |= dict.fromkeys(news)
        todo += news
    return [node for node in both if node not in reached]


def troubles(stack: str, seed: int) -> tuple[list[str], int]:
    """And how many are cut off."""
    world = play(stack, seed)
    alone, repeated = cut_off(world), world.summary().repeated
    holes = [hole for hole in world.collector.holes(10_000) if hole[2] not in alone]
    found = [f"{len(holes)} missing, such as {holes[0]}"] if holes else []
    return found + ([f"{repeated} repeated"] if repeated else []), len(alone)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_everyone_that_stays_has_everything_once(stack: str, first: int) -> None:
    played = {seed: troubles(stack, seed) for seed in range(first, first + BATCH)}
    found = {seed: wrong for seed, (wrong, _) in played.items() if wrong}
    assert not found, f"play({stack!r}, seed) in {__name__}: {found}"
    assert sum(alone for _, alone in played.values()) <= BATCH * NODES / 20, "too many to tell"


def test_without_pulling_some_would_miss_something() -> None:
    """The faults do harm: what passes above has mended it."""
    for stack in ("simple-gossip", "Emergent over Scamp"):
        assert any(play(stack, seed, dissemination={"pull": "none"}).summary().missing for seed in range(6)), stack
