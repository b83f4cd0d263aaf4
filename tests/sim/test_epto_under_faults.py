"""EpTO when all goes wrong: no inversion and no lost event of one's own, whatever the seed brings (E-I1, E-I2, E-I3,
E-I5).

Holes are allowed here: agreement is only probable, and nobody promises it across a partition.
"""

import os
from heapq import heapify
from random import Random
from typing import Any

import pytest

from epicast.core.records import Level
from epicast.ordering.stable import FIRST, Line, StableOrder
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.delivered import Delivered

BLOCKS, SEEDS = 20, 500 if os.environ.get("EPICAST_SOAK") == "1" else 50  # 1,000 in all; 10,000 in a soak

ROUND_MAX_US = 500_000  # the longest period, with the largest drift


def mischief(seed: int) -> dict[str, Any]:
    """A scenario with faults of all kinds, drawn from one number."""
    chance = Random(seed)
    nodes = chance.randint(5, 20)
    in_balls = chance.random() < 0.7
    balls = {
        "clock": chance.choice(["logical", "global"]),
        "period": f"{chance.choice([20, 60, 125])}ms",
        "drift": chance.choice([0.0, 0.1, 1.0, 3.0]),
        "c": chance.choice([0.5, 1.0, 1.25]),
        "fanout": chance.choice([0, 0, 2]),
        "epoch_intervals": 8,
    }
    cyclon = {"protocol": "cyclon", "view_size": 16, "exchange_size": 8, "exchange_interval": "250ms"}
    order = {"scope": chance.choice(["topic", "all"]), "late": chance.choice(["drop", "correct"])}
    if in_balls:
        stack = {
            "membership": chance.choice([cyclon, {"protocol": "hyparview"}]),
            "dissemination": {"protocol": "balls", **balls},
            "ordering": {"protocol": "epto", **order},
        }
    else:
        stack = {
            "membership": {"protocol": "hyparview"},
            "dissemination": {"protocol": chance.choice(["brisa", "flood"])},
            "ordering": {"protocol": "epto-ids", "balls": balls, "order": order, "payload_wait": "1s"},
        }
    faults: list[dict[str, Any]] = []
    for _ in range(chance.randint(0, 3)):
        at = chance.uniform(0.0, 2.0)
        until = at + chance.uniform(0.3, 2.0)
        spell: dict[str, Any] = {"at": f"{at:.3f}s", "until": f"{until:.3f}s", "fraction": chance.uniform(0.1, 0.5)}
        kind = chance.choice(["partition", "one-way", "isolate", "pause", "clock-jump", "clog", "crash"])
        if kind == "crash":
            del spell["until"]
        if kind in ("clock-jump", "clog"):
            spell["delay"] = chance.choice(["300ms", "700ms"] if kind == "clog" else ["500ms", "1h"])
        faults.append({"kind": kind, **spell})
    datagrams = chance.random() < 0.7
    return {
        "stack": stack,
        "nodes": nodes,
        "latency": chance.choice(["uniform 1ms 30ms", "quantiles planetlab-epto", "constant 10ms"]),
        "network": {"transport": "datagram", "loss": chance.choice([0.0, 0.1, 0.3]), "duplication": 0.05}
        if datagrams
        else {"transport": "tcp"},
        "joins": {"interval": "20ms"},
        "warmup": "1500ms",
        "churn": chance.choice(["", "", "const churn 10% each 500ms"]),
        "protect_sources": False,
        "workload": {
            "messages": 30,
            "rate": chance.choice([10.0, 40.0]),
            "pattern": "poisson",
            "sources": nodes,
            "source_order": "random",
            "payload_bytes": 8,
            "topics": ["a", "b/c", "d"],
        },
        "fault": faults,
        "drain": "1s",
    }


def waiting(world: World) -> list[int]:
    """The processes that have something left to deliver."""
    return [node for node in world.up if world.nodes[node].order.order.pending]  # type: ignore[union-attr]


def play(seed: int) -> list[str]:
    """What is wrong, each with the call that plays it again."""
    world = World(Scenario.load(mischief(seed)), seed, level=Level.DELIVERIES)
    seen = Delivered(world)
    world.run()
    for node in world.up:  # whoever is paused goes on, and all that waits has its turn
        world.resume(node)
    world.run_until(world.now_us + ROUND_MAX_US)  # events published last are in no round yet
    world.run_while(lambda: waiting(world) != [], 2_000_000, world.now_us + 60_000_000)
    world.engine.flush()
    (first, *_) = world.nodes.values()
    order: StableOrder = first.order.order  # type: ignore[union-attr]
    wrong = {
        "inversions": seen.knotted(across_topics=order.config.scope == "all"),
        "delivered twice": seen.twice(),
        "never published": seen.strays(),
        "own events lost": seen.own_lost(),
        "still waiting": waiting(world),
    }
    return [f"play({seed}): {what}: {found[:3]}" for what, found in wrong.items() if found]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_inversion_and_no_lost_event_of_ones_own(block: int) -> None:
    wrong = [line for seed in range(block * SEEDS, (block + 1) * SEEDS) for line in play(seed)]
    assert not wrong, "\n".join(["from tests.sim.test_epto_under_faults import play", *wrong])


class NoGuard(StableOrder):
    """Takes whatever comes, also what belongs before the last delivered event."""

    def _line(self, topic: str) -> Line:
        line = super()._line(topic)
        line.last = FIRST
        return line


class Impatient(StableOrder):
    """E-E10 read the wrong way: what is not stable does not hold up what is, but is left out."""

    def release(self, born_before: int, patience: int = 0) -> None:
        for line in self.lines.values():
            stable = [key for key in line.heap if self.births[key] < born_before]
            if stable:
                for key in [key for key in line.heap if key < max(stable) and key not in stable]:
                    line.heap.remove(key)
                    del self.pending[key]
                heapify(line.heap)
        super().release(born_before, patience)


@pytest.mark.parametrize(("bug", "what"), [(NoGuard, "inversions"), (Impatient, "own events lost")])
def test_it_would_be_seen(bug: type[StableOrder], what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epicast.ordering.epto.StableOrder", bug)
    found = [line for seed in range(40) for line in play(seed)]
    assert any(what in line for line in found)
