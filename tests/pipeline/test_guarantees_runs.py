"""Sound stacks keep their promises under faults, and the checkers agree with what the simulator itself has counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epicast.core.records import Level
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import Verdict, judge
from epicast.pipeline.kernel import RunFacts
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.summary import Summary
from epicast.sim.world import World
from epicast.trace.run import RunFolder

STACKS = ("flood", "brisa", "brisa-delay", "static-flood", "static-brisa")

# All within the first seconds: twelve seconds of messages follow, in which trees can come to rest.
FAULTS: dict[str, dict[str, Any]] = {
    "none": {},
    "crashes and joins": {"churn": "from 0s to 6s const churn 10% each 2s"},
    "goodbyes and joins": {"churn": "from 0s to 6s const churn 10% each 2s leave"},
    "loss on links": {"network": {"loss": 0.05}},
    "datagrams": {"network": {"transport": "datagram", "loss": 0.02, "duplication": 0.1, "reordering": 0.1}},
    "narrow uplinks": {"network": {"bandwidth_bps": 400_000, "queue_bytes_max": 20_000}},
    "a partition": {"fault": [{"kind": "partition", "at": "1s", "until": "5s", "fraction": 0.4}]},
    "pauses and crashes": {
        "fault": [
            {"kind": "pause", "at": "1s", "until": "5s", "nodes": [4, 5, 6, 7]},
            {"kind": "crash", "at": "3s", "nodes": [5, 6, 8]},
        ]
    },
    "broken links": {
        "fault": [
            {"kind": "reset", "at": "1s", "fraction": 0.5},
            {"kind": "half-open", "at": "3s", "fraction": 0.3},
            {"kind": "one-way", "at": "4s", "until": "5s", "fraction": 0.3},
        ]
    },
}
SEEDS = {"brisa": (1, 2, 3), "brisa-delay": (1, 2)}


def play(folder: Path, stack: str, seed: int, **changes: Any) -> tuple[Summary, dict[str, Verdict], str]:
    base = {"nodes": 20, "warmup": "12s", "workload": {"messages": 36, "rate": 2, "sources": 2}, "drain": "20s"}
    world = World(Scenario.load({"stack": stack, **base, **changes}), seed, level=Level.FULL)
    summary = play_into(folder, world, [])
    run = RunFolder.open(folder).require_complete()
    facts = RunFacts.of(run.info)
    with DuckKernel(run) as kernel:
        tables.define(kernel, facts)
        return summary, {verdict.guarantee: verdict for verdict in judge(kernel, facts)}, world.replay


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_keeps_its_promises(stack: str, fault: str, tmp_path: Path) -> None:
    for seed in SEEDS.get(stack, (1,)):
        summary, found, replay = play(tmp_path / str(seed), stack, seed, **FAULTS[fault])
        broken = {name: verdict.findings for name, verdict in found.items() if verdict.broken}
        assert not broken, replay
        assert found["integrity"].checked == summary.deliveries
        assert (found["agreement"].checked, found["agreement"].violations) == (summary.owed, summary.missing), replay
        assert found["accounting"].judged
        assert found["accounting"].checked > 0


@pytest.mark.parametrize("fault", [name for name in FAULTS if "joins" not in name])
@pytest.mark.parametrize("stack", ["brisa", "brisa-delay"])
def test_the_tree_of_a_run_at_rest_is_judged(stack: str, fault: str, tmp_path: Path) -> None:
    summary, found, replay = play(tmp_path, stack, 4, **FAULTS[fault])
    assert (found["tree"].judged, found["tree"].checked) == (True, 2 * (summary.nodes["up_at_end"] - 1)), replay
    assert found["tree"].violations == 0, found["tree"].findings


def test_over_a_graph_whose_links_go_both_ways_a_fixed_overlay_keeps_agreement_and_tree(tmp_path: Path) -> None:
    _, found, _ = play(tmp_path, "static-brisa", 1, joins={"graph": "symmetric"})
    assert all(found[name].judged and not found[name].violations for name in ("agreement", "tree"))


def test_over_a_graph_whose_links_go_one_way_trees_are_not_whole(tmp_path: Path) -> None:
    """Which is why the stack does not promise them."""
    _, found, _ = play(tmp_path, "static-brisa", 4, joins={"graph": "directed"})
    assert found["tree"].violations > 0
    assert not found["tree"].broken


def test_processes_that_are_paused_to_the_end_are_left_out_though_the_simulator_counts_them(tmp_path: Path) -> None:
    fault = {"kind": "pause", "at": "1s", "nodes": [4, 5]}
    summary, found, _ = play(tmp_path, "brisa", 1, fault=[fault], drain="1s")
    assert summary.missing
    assert found["agreement"].violations == 0
    assert "2 processes paused at the end left out" in found["agreement"].reason
    assert found["tree"].reason == "2 processes paused in the last picture"


def test_a_message_that_is_lost_for_good_makes_holes_that_flooding_did_not_promise_to_mend(tmp_path: Path) -> None:
    network = {"transport": "datagram", "loss": 0.3}
    summary, found, _ = play(tmp_path, "flood", 1, network=network, overrides={"membership": {"active_size": 2}})
    assert summary.missing
    assert found["agreement"].violations == summary.missing
    assert not any(verdict.broken for verdict in found.values())
