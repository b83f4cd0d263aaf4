"""A whole sweep in miniature on Spark: played, resumed, gone on with after a worker was killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from epicast.core.errors import EpicastError
from epicast.pipeline.layout import Layout
from epicast.pipeline.sweep.experiment import Experiment
from epicast.pipeline.sweep.sweep import Swept, runs, sweep
from epicast.trace import lock
from epicast.trace.run import RunFolder

COMMAND = ["epicast", "run", "x"]
SMALL = {"stack": "flood", "nodes": 8, "warmup": "2s", "workload": {"messages": 2}}


def experiment(**changes: object) -> Experiment:
    axes = {"view": {"key": "overrides.membership.active_size", "values": [3, 4]}}
    return Experiment.load({"title": "x", "seeds": 2, "scenario": SMALL, "axes": axes, **changes})


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "out")


def test_a_sweep_plays_every_run_and_tells_what_became_of_it(spark: SparkSession, layout: Layout) -> None:
    seen: list[tuple[int, int, int]] = []
    swept = sweep(spark, experiment(), layout, COMMAND, lambda *counts: seen.append(counts))
    assert swept == Swept(runs=4, played=4, failed=0, failures=())
    assert seen[-1] == (4, 0, 4)
    rows = runs(spark, layout).orderBy("number").collect()
    assert [(row["labels"], row["seed"], row["status"]) for row in rows] == [
        ({"view": "3"}, 1, "done"),
        ({"view": "4"}, 1, "done"),
        ({"view": "3"}, 2, "done"),
        ({"view": "4"}, 2, "done"),
    ]
    for row in rows:
        run = RunFolder.open(layout.run(row["run"])).require_complete()
        assert (run.info.seed, run.info.rows) == (row["seed"], row["rows"])
    assert not layout.unfinished.exists()


def test_a_sweep_that_is_started_again_plays_only_what_is_missing(spark: SparkSession, layout: Layout) -> None:
    sweep(spark, experiment(), layout, COMMAND)
    assert sweep(spark, experiment(seeds=3), layout, COMMAND).played == 2
    assert runs(spark, layout).count() == 6


def test_a_run_that_fails_leaves_the_others_alone(spark: SparkSession, layout: Layout) -> None:
    broken = {"cases": {"good": {}, "bad": {"latency": "matrix no-such-file.csv"}}}
    swept = sweep(spark, experiment(axes={"latency": broken}), layout, COMMAND)
    assert (swept.runs, swept.played, swept.failed) == (4, 2, 2)
    assert swept.failures[0].point == "latency bad"
    assert "no-such-file.csv" in swept.failures[0].reason


def test_two_sweeps_do_not_write_into_one_folder(spark: SparkSession, layout: Layout) -> None:
    claim = lock.acquire(layout.make().root)
    assert claim is not None
    with pytest.raises(EpicastError, match="another sweep is writing"):
        sweep(spark, experiment(), layout, COMMAND)
    lock.release(claim)


def test_a_folder_without_a_sweep_is_refused(spark: SparkSession, layout: Layout) -> None:
    with pytest.raises(EpicastError, match="holds no finished sweep"):
        runs(spark, layout)


def test_a_worker_killed_half_way_is_replaced_and_leaves_no_partial_run(spark: SparkSession, layout: Layout) -> None:
    long = {**SMALL, "nodes": 64, "workload": {"messages": 400, "rate": 50}}
    killer = Killer(layout.make().unfinished)
    killer.start()
    swept = sweep(spark, experiment(scenario=long, seeds=1), layout, COMMAND)
    killer.join()
    assert killer.killed, "the run was over before it could be killed"
    assert (swept.played, swept.failed) == (2, 0)
    names = {row["run"] for row in runs(spark, layout).collect()}
    assert {entry.name for entry in layout.runs.iterdir()} == names
    digests = {name: RunFolder.open(layout.run(name)).require_complete().info.digest for name in names}

    again = Layout(layout.root.parent / "again")
    sweep(spark, experiment(scenario=long, seeds=1), again, COMMAND)
    assert {name: RunFolder.open(again.run(name)).info.digest for name in names} == digests


class Killer(Thread):
    """Kills the first worker that is seen to write a run."""

    def __init__(self, unfinished: Path) -> None:
        super().__init__(daemon=True)
        self.unfinished = str(unfinished)
        self.killed = 0

    def run(self) -> None:
        for _ in range(200_000):
            for pid in self._writers():
                self.killed = pid
                os.kill(pid, signal.SIGKILL)
                return

    def _writers(self) -> Iterator[int]:
        """The lock of a run folder is held open while it is written."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if int(process.name) != os.getpid() and any(
                    os.readlink(handle).startswith(f"{self.unfinished}/") for handle in (process / "fd").iterdir()
                ):
                    yield int(process.name)
            except OSError:
                continue


def test_the_folder_says_what_was_run(spark: SparkSession, layout: Layout) -> None:
    sweep(spark, experiment(), layout, COMMAND)
    assert Experiment.read(layout.experiment) == experiment()
    name = runs(spark, layout).first()["run"]  # type: ignore[index]
    assert json.loads((layout.run(name) / "run.json").read_text())["command"] == COMMAND
