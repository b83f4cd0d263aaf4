"""Total order, simulated and on live nodes: one order in both, and a delay that is made of rounds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

from epicast.core.records import Level
from epicast.live.sync import new_loop
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.merge import find_journals, merge
from epicast.trace.read import read_events, read_nodes
from epicast.trace.run import RunFolder
from tests.live.test_parity import outcome, play_live

SCENARIO = """
stack = "epto-brisa"
nodes = 16
latency = "uniform 1ms 5ms"
warmup = "6s"
drain = "20s"
snapshot_interval = "1s"
[overrides.ordering.balls]
period = "60ms"
[joins]
interval = "20ms"
[workload]
messages = 60
rate = 20
sources = 4
payload_bytes = 100
"""


def orders_and_delays(run: RunFolder) -> tuple[list[list[tuple[int, int]]], list[float]]:
    """Of each process, what it delivered; and how long everything took, in ms."""
    events = read_events(run.path).to_pylist()
    place = {row["node"]: at for at, row in enumerate(read_nodes(run.path).to_pylist())}
    published = {(row["source"], row["seq"]): row["time_us"] for row in events if row["kind"] == "publish"}
    orders: list[list[tuple[int, int]]] = [[] for _ in place]
    delays = []
    for row in sorted((row for row in events if row["kind"] == "deliver"), key=lambda row: row["time_us"]):
        orders[place[row["node"]]].append((row["source"], row["seq"]))
        delays.append((row["time_us"] - published[row["source"], row["seq"]]) / 1000)
    return orders, delays


def test_total_order_is_the_same_thing_simulated_and_live(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SCENARIO)
    play_into(tmp_path / "sim", World(scenario, 3, level=Level.FULL), [])
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play_live(tmp_path / "live", scenario))
    runs = {
        "sim": RunFolder.open(tmp_path / "sim"),
        "live": merge(find_journals(tmp_path / "live"), tmp_path / "live" / "merged", command=["parity"]),
    }
    delay = {}
    for name, run in runs.items():
        orders, delays = orders_and_delays(run)
        assert len(orders) == 16
        assert {len(order) for order in orders} == {60}
        assert len({tuple(order) for order in orders}) == 1
        verdicts = outcome(run).verdicts
        for promise in ("integrity", "validity", "agreement", "fifo", "causal", "total"):
            assert verdicts[promise]["violations"] == 0, (name, verdicts[promise])
        delay[name] = median(delays)
    print(delay)
    # Twice TTL rounds in both. How much more it is live depends on what else the machine has to do.
    assert delay["live"] > 0.7 * delay["sim"]
