"""FIFO and causal order over trees and floods, while messages are lost, late, doubled and out of order, processes come
and go, and some stand still.

Several publishers at once, more messages a second than the network takes to carry one. The run's own checkers judge:
causality is recomputed from the trace. The same runs without an order are rejected, so they could have failed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from epicast.core.records import Kind, Level
from epicast.ordering.predecessors import Predecessors
from epicast.ordering.waiting import Turn
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import Verdict, judge
from epicast.pipeline.kernel import RunFacts
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.batch import Batch
from epicast.trace.run import RunFolder

SEEDS = (1, 2, 3)
BASE: dict[str, Any] = {
    "nodes": 24,
    "warmup": "12s",
    "workload": {"messages": 200, "rate": 40, "sources": 6, "payload_bytes": 20},
    "drain": "60s",
    "codec_check": True,
}
STACKS: dict[str, dict[str, Any]] = {
    "fifo-brisa": {"stack": "fifo-brisa"},
    "causal-brisa": {"stack": "causal-brisa"},
    "causal-brisa with vectors": {"stack": "causal-brisa", "overrides": {"ordering": {"clock": "vector"}}},
    "causal-flood": {"stack": "causal-flood"},
}
DISORDER = {"transport": "datagram", "loss": 0.02, "duplication": 0.1, "reordering": 0.2, "reorder": "200ms"}
PAUSES = [
    {"kind": "pause", "at": "1s", "until": "4s", "nodes": [4, 5, 6, 7]},
    {"kind": "crash", "at": "3s", "nodes": [8, 9]},
]
FAULTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "crashes and joins": {"churn": "from 0s to 6s const churn 10% each 2s"},
    "goodbyes and joins": {"churn": "from 0s to 6s const churn 10% each 2s leave"},
    "loss on links": {"network": {"loss": 0.05}},
    "disorder": {"network": DISORDER},
    "a partition": {"fault": [{"kind": "partition", "at": "1s", "until": "5s", "fraction": 0.4}]},
    "pauses and crashes": {"fault": PAUSES},
}
STORM: dict[str, Any] = {
    "network": DISORDER,
    "churn": "from 0s to 6s const churn 10% each 2s",
    "fault": [*PAUSES, {"kind": "partition", "at": "2s", "until": "4s", "fraction": 0.3}],
}


class Told:
    """What each process reported as lost, by the rows of the trace."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lost: Counter[int] = Counter()
        world.sinks.append(self._take)

    def _take(self, batch: Batch) -> None:
        for kind, node, detail in zip(batch.kind.tolist(), batch.node.tolist(), batch.detail.tolist(), strict=True):
            if kind == Kind.GAP:
                self.lost[node] += int(self.world.names[detail].split(" ", 1)[0])


def play(folder: Path, seed: int, **scenario: Any) -> tuple[World, dict[str, Verdict], Told]:
    world = World(Scenario.load({**BASE, **scenario}), seed, level=Level.DELIVERIES)
    told = Told(world)
    play_into(folder, world, [])
    run = RunFolder.open(folder).require_complete()
    facts = RunFacts.of(run.info)
    with DuckKernel(run) as kernel:
        tables.define(kernel, facts)
        return world, {verdict.guarantee: verdict for verdict in judge(kernel, facts)}, told


def broken(found: dict[str, Verdict]) -> dict[str, Any]:
    return {name: verdict.findings for name, verdict in found.items() if verdict.broken}


# Vectors are for groups that do not change.
TRIALS = [(stack, fault) for stack in STACKS for fault in FAULTS if not ("vectors" in stack and "joins" in fault)]


@pytest.mark.parametrize(("stack", "fault"), TRIALS)
def test_an_order_keeps_its_promises(stack: str, fault: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        world, found, _ = play(tmp_path / str(seed), seed, **STACKS[stack], **FAULTS[fault])
        assert not broken(found), world.replay
        assert found["fifo"].judged, world.replay
        assert found["fifo"].checked > 2_000, world.replay
        assert found["causal"].judged, world.replay


@pytest.mark.parametrize("stack", STACKS)
def test_in_a_storm_there_may_be_holes_but_never_an_inversion(stack: str, tmp_path: Path) -> None:
    """Trees bring everything in the end. What newcomers cannot put in order any more they report as lost."""
    for seed in SEEDS:
        world, found, told = play(tmp_path / str(seed), seed, **STACKS[stack], **STORM)
        disordered = {name: found[name].findings for name in ("integrity", "fifo", "causal") if found[name].broken}
        assert not disordered, world.replay
        missing = Counter(node for _, _, node in world.collector.holes(10_000))
        silent = {node: lost for node, lost in missing.items() if lost > told.lost[node]}
        if "brisa" in stack and "vectors" not in stack:
            assert not silent, world.replay
            assert sum(missing.values()) < 50, world.replay


# The runs are able to fail


@pytest.mark.parametrize(("stack", "guarantee"), [("brisa", "fifo"), ("brisa", "causal"), ("flood", "causal")])
@pytest.mark.parametrize("changes", [FAULTS["disorder"], STORM], ids=["disorder", "storm"])
def test_without_an_order_the_checkers_reject_the_run(
    stack: str, guarantee: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    _, found, _ = play(tmp_path, 1, stack=stack, **changes)
    assert found[guarantee].violations > 50


def test_an_order_that_waits_for_no_names_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predecessors, "judge", lambda room, held: Turn.NOW)
    _, found, _ = play(tmp_path, 1, **STACKS["causal-brisa"], **FAULTS["disorder"])
    assert found["causal"].broken
    assert not found["fifo"].violations


def test_first_in_first_out_is_not_causal(tmp_path: Path) -> None:
    _, found, _ = play(tmp_path, 1, **STACKS["fifo-brisa"], **FAULTS["disorder"])
    assert found["causal"].violations
    assert not found["fifo"].violations


# Limits


def test_vectors_say_what_newcomers_cannot_read(tmp_path: Path) -> None:
    world, found, told = play(tmp_path, 1, **STACKS["causal-brisa with vectors"], **FAULTS["crashes and joins"])
    lacking = {node for _, _, node in world.collector.holes(10_000)}
    assert lacking
    assert min(lacking) >= BASE["nodes"]  # they all came later
    assert set(told.lost) == lacking
    assert not found["causal"].violations


def test_publishers_that_must_wait_for_room_all_have_their_turn(tmp_path: Path) -> None:
    """With barriers of one name, publishers wait for each other; nobody waits for ever."""
    tight = {"barrier_max": 1, "patience": "1s", "settle": "500ms", "stable": "2s"}
    held_back: list[int] = []
    world = World(Scenario.load({**BASE, "stack": "causal-brisa", "overrides": {"ordering": tight}}), 1)
    for second in range(30):
        world.call_at(second * 1_000_000, lambda: held_back.append(sum(world.held_back.values())))
    summary = world.run()
    assert max(held_back) > 10
    assert summary.messages == 200, world.replay
    assert summary.delivery_ratio == 1.0, world.replay
