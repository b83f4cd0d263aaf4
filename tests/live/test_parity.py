"""One scenario, simulated and on live nodes: the same messages reach the same processes, under the same guarantees."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from epicast.core.records import Level
from epicast.live.node import Node
from epicast.live.sync import new_loop
from epicast.pipeline import analysis
from epicast.pipeline.duck import DuckKernel
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.workload import publications
from epicast.sim.world import World
from epicast.trace.merge import find_journals, merge
from epicast.trace.read import read_events, read_nodes, read_snapshots
from epicast.trace.run import RunFolder

SCENARIO = """
stack = "brisa"
nodes = 32
latency = "uniform 1ms 5ms"
warmup = "6s"
drain = "20s"
snapshot_interval = "1s"
[joins]
interval = "20ms"
[workload]
messages = 100
rate = 20
sources = 2
payload_bytes = 200
"""
SEEDS = (1, 2, 3, 4, 5)
DEADLINE_S = 40.0
REST_S = 11.0  # before a tree is judged

DEPTH_SLACK = 3
COPIES_MAX = 1.1


@dataclass(frozen=True)
class Outcome:
    """What a run comes down to. Processes are numbered in the order in which they came."""

    delivered: list[set[tuple[int, int]]]  # of each process: publisher and number
    verdicts: dict[str, dict[str, Any]]
    depths: list[int]  # the greatest of each tree
    copies: float  # that arrive for a delivery, once the trees are there


def outcome(run: RunFolder) -> Outcome:
    with DuckKernel(run.require_complete()) as kernel:
        answer: dict[str, Any] = analysis.analyse(kernel, run, "run").to_pylist()[0]
    events = read_events(run.path).to_pylist()
    place = {row["node"]: at for at, row in enumerate(read_nodes(run.path).to_pylist())}
    delivered: list[set[tuple[int, int]]] = [set() for _ in place]
    for row in events:
        if row["kind"] == "deliver":
            delivered[place[row["node"]]].add((place[row["source"]], row["seq"]))
    verdicts = {verdict["guarantee"]: verdict for verdict in answer["verdicts"]}
    return Outcome(delivered, verdicts, depths(run), copies(events))


def depths(run: RunFolder) -> list[int]:
    """In the last picture."""
    rows = [row for row in read_snapshots(run.path).to_pylist() if row["overlay"] == "tree"]
    last_us = max(row["time_us"] for row in rows)
    trees: dict[str, dict[int, int]] = {}
    for row in rows:
        if row["time_us"] == last_us:
            trees.setdefault(row["flow"], {})[row["node"]] = row["peer"]
    return [max(depth(node, parents) for node in parents) for parents in trees.values()]


def depth(node: int, parents: dict[int, int]) -> int:
    steps = 0
    while node in parents:
        node, steps = parents[node], steps + 1
        assert steps <= len(parents), "a cycle"
    return steps


def copies(events: Iterable[dict[str, Any]]) -> float:
    """The first message of a flow builds its tree, and is left out."""
    count: Counter[str] = Counter()
    for row in events:
        if row["seq"] > 0 and row["kind"] in ("receive", "duplicate") and row["detail"] == "Data":
            count["came"] += 1
        elif row["seq"] > 0 and row["kind"] == "deliver" and row["node"] != row["source"]:
            count["delivered"] += 1
    return count["came"] / count["delivered"]


# Simulated


def simulated(folder: Path, scenario: Scenario, seed: int) -> Outcome:
    play_into(folder, World(scenario, seed, level=Level.FULL), [])
    return outcome(RunFolder.open(folder))


# Live


def live(folder: Path, scenario: Scenario) -> Outcome:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play_live(folder, scenario))
    return outcome(merge(find_journals(folder), folder / "merged", command=["parity"]))


async def play_live(folder: Path, scenario: Scenario) -> None:
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        for number in range(scenario.nodes):
            seeds = [node.address for node in nodes[-scenario.joins.contacts :]]
            node = Node(stack=scenario.build_stack(), seeds=seeds, trace=folder / f"node{number:02}")
            nodes.append(await stack.enter_async_context(node))
            await asyncio.sleep(scenario.joins.interval_us / 1e6)
        for node in nodes:
            await node.ready(DEADLINE_S)
        rest = asyncio.create_task(asyncio.sleep(REST_S))
        await asyncio.sleep(scenario.warmup_us / 1e6)
        await publish(nodes, scenario)
        await rest


async def publish(nodes: list[Node], scenario: Scenario) -> None:
    """What the simulator's processes would, when they would."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    counted = [0 for _ in nodes]
    for each in publications(scenario.workload, Random(1)):
        await asyncio.sleep(start_s + each.time_us / 1e6 - loop.time())
        await nodes[scenario.source_ids[each.source_index]].publish(each.topic, bytes(each.payload_bytes))
    async with asyncio.timeout(DEADLINE_S):
        while min(counted) < scenario.workload.messages:
            await asyncio.sleep(0.05)
            counted = [node._hub.counters["delivered"] for node in nodes]


# One test: several processes may run the tests, and each would play it all again


def test_a_scenario_ends_alike_simulated_and_live(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SCENARIO)
    simulations = [simulated(tmp_path / str(seed), scenario, seed) for seed in SEEDS]
    alive = live(tmp_path / "live", scenario)
    the_same_messages_reach_everyone(simulations, alive)
    for each in (*simulations, alive):
        all_promises_are_kept(each)
        assert 1.0 <= each.copies <= COPIES_MAX
    the_same_trees_grow(simulations, alive)


def the_same_messages_reach_everyone(simulations: list[Outcome], alive: Outcome) -> None:
    everything = {(source, seq) for source in (0, 1) for seq in range(50)}
    assert alive.delivered == [everything] * 32
    for each in simulations:
        assert each.delivered == alive.delivered


def all_promises_are_kept(each: Outcome) -> None:
    promised = {name: verdict for name, verdict in each.verdicts.items() if verdict["promised"]}
    assert promised.keys() == {"integrity", "validity", "agreement", "no-parasites", "tree", "accounting"}
    for name, verdict in promised.items():
        assert verdict["judged"], (name, verdict["reason"])
        assert verdict["violations"] == 0, (name, verdict["reason"], verdict["findings"])


def the_same_trees_grow(simulations: list[Outcome], alive: Outcome) -> None:
    usual = [depth for each in simulations for depth in each.depths]
    print({"simulated depths": usual, "live": alive.depths})
    print({"simulated copies": [round(each.copies, 3) for each in simulations], "live": round(alive.copies, 3)})
    assert len(alive.depths) == 2
    assert min(usual) - DEPTH_SLACK <= min(alive.depths)
    assert max(alive.depths) <= max(usual) + DEPTH_SLACK
