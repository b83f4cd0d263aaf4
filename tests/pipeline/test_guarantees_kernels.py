"""One SQL text, two kernels, the same verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from epicast.core.ids import NOBODY
from epicast.core.promises import PROMISES
from epicast.core.records import Level
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import Verdict, judge
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.spark_sql import SparkKernel
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.run import RunFolder
from tests.pipeline.histories import History


def everything_wrong(folder: Path) -> RunFolder:
    h = History(9)
    m = h.publish(0)
    h.everywhere(m, m, nodes=[1])
    h.deliver(2, m._replace(topic="other"))
    h.deliver(3, m._replace(seq=9))
    h.deliver(3, m._replace(seq=1))
    swapped = h.publish(0), h.publish(0, own=False)
    h.deliver(4, *reversed(swapped))
    chain = [m]
    for node in (4, 5, 6):
        chain.append(h.publish(node, own=False))
        h.deliver(node + 1, chain[-1])
    h.deliver(8, chain[-1], chain[1])
    circle = [h.publish(node, own=False) for node in (1, 2, 3)]
    for node, at in ((4, 0), (5, 1), (6, 2)):
        h.deliver(node, circle[at], circle[(at + 1) % 3])
    for node in range(1, 7):
        h.parent(node, 0)
    h.parent(7, NOBODY)
    h.wait(11)
    h.parent(8, NOBODY)
    h.picture([(0, 1), (1, 0), (2, 0), (2, 1), (3, 4), (4, 3), (5, 6), (6, 0)])
    h.picture(dict.fromkeys(range(8), 8), "8/0")
    h.send(0, 1)
    h.receive(1, 0)
    h.receive(1, 0)
    h.receive(2, 3)
    return h.save(folder)


def parasites(folder: Path) -> RunFolder:
    h = History(6)
    h.subscribe(0, 1, 2, 3)
    h.unsubscribe(2)
    h.subscribe(2)
    posts = [h.publish(0), h.publish(1), h.publish(0)]
    h.deliver(1, posts[2], posts[0])
    h.deliver(2, posts[1])
    h.unsubscribe(3)
    h.deliver(3, *posts)
    h.deliver(5, posts[0])
    h.pause(4)
    h.receive(4, 0, source=0, seq=0, topic="t")
    return h.save(folder)


def nothing(folder: Path) -> RunFolder:
    return History(0, level=Level.DELIVERIES).save(folder)


def simulated(folder: Path) -> RunFolder:
    workload = {"messages": 30, "rate": 10, "sources": 3}
    scenario = Scenario.load({"nodes": 24, "churn": "const churn 10% each 1s", "workload": workload})
    play_into(folder, World(scenario, 5, level=Level.FULL), [])
    return RunFolder.open(folder)


RUNS = {make.__name__: make for make in (everything_wrong, parasites, nothing, simulated)}


def verdicts(kernel: Kernel, run: RunFolder) -> list[Verdict]:
    facts = RunFacts.of(run.info)
    tables.define(kernel, facts)
    return judge(kernel, facts)


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS.keys())
def test_both_kernels_come_to_the_same_verdicts(
    spark: SparkSession, make: Callable[[Path], RunFolder], tmp_path: Path
) -> None:
    run = make(tmp_path / "run")
    with DuckKernel(run) as duck:
        ours = verdicts(duck, run)
    with SparkKernel(spark, run, tmp_path / "scratch") as kernel:
        theirs = verdicts(kernel, run)
    assert theirs == ours
    wrong = [verdict.guarantee for verdict in ours if verdict.violations]
    assert wrong == WRONG[make.__name__]


WRONG = {
    "everything_wrong": [name for name in PROMISES if name != "no-parasites"],
    "parasites": ["agreement", "fifo", "causal", "total", "no-parasites", "accounting"],
    "nothing": [],
    "simulated": ["fifo", "causal", "total"],  # which the stack does not promise
}
