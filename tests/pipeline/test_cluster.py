"""The same jobs on a real cluster and behind Spark Connect: executors get epicast sent, and an experiment that loses a
worker half-way gives the same tables as on one machine. A cluster takes long to start, so one serves a job after the
other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epicast.pipeline.layout import Layout
from epicast.pipeline.small_runs import Plan, analyse_small
from epicast.pipeline.sweep.experiment import Experiment
from epicast.pipeline.sweep.play import play
from epicast.stacks import stack
from tests.pipeline.standalone import connect_server, standalone

WAIT_S = 180
JOB = Path(__file__).with_name("cluster_job.py")  # a program of its own
SMALL = """
title = "Small"
seeds = 2
[scenario]
stack = "brisa"
nodes = 16
"""
SEVERAL = """
title = "Several"
seeds = 3
[scenario]
stack = "brisa"
nodes = 48
[scenario.workload]
messages = 60
rate = 20
[axes.view]
key = "overrides.membership.active_size"
values = [3, 4]
"""


def answer_of(words: list[str], ready: Callable[[], bool], then: Callable[[], object]) -> dict[str, Any]:
    """What a driver prints as JSON, and nothing else; once it is ready, something happens to it."""
    driver = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + WAIT_S
        while not ready():
            assert driver.poll() is None, driver.communicate()
            assert time.monotonic() < deadline, "nothing began"
            time.sleep(0.02)
        then()
        out, err = driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
        driver.wait()
    assert (driver.returncode, err) == (0, "")
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer


def run_a_job(master: str, folder: Path) -> list[dict[str, Any]]:
    """Two tasks that are under way at once, each of which tells where it ran and which epicast it was sent."""
    folder.mkdir()
    answer = answer_of(
        [str(JOB), master, str(folder)],
        ready=lambda: all((folder / f"started-{part}-0").exists() for part in (0, 1)),
        then=(folder / "go").touch,
    )
    assert answer["zone"] == "UTC"
    rows: list[dict[str, Any]] = answer["rows"]
    assert sorted(row["part"] for row in rows) == [0, 1]
    for row in rows:
        assert "epicast.zip" in row["package"]
        assert row["stacks"].split() == stack.names()
    return rows


def run_an_experiment(
    text: str, master: str, layout: Layout, then: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Something happens as soon as it has a run."""
    file = layout.root.with_suffix(".toml")
    file.write_text(text)
    words = ["run", str(file), "--out", str(layout.root), "--master", master, "--json", "-q"]
    return answer_of(
        ["-m", "epicast.cli.main", *words],
        ready=lambda: layout.runs.exists() and any(layout.runs.iterdir()),
        then=then,
    )


def table(layout: Layout, name: str) -> list[dict[str, object]]:
    """Of all runs, in an order that does not depend on who wrote it."""
    parts = [pq.read_table(folder, partitioning=None) for folder in sorted(layout.table(name, "").parent.glob("run=*"))]
    rows = pa.concat_tables(parts)
    return rows.sort_by([(column, "ascending") for column in rows.column_names]).to_pylist()  # type: ignore[no-any-return]


def test_a_cluster_runs_a_job_on_all_executors_and_an_experiment_although_a_worker_dies(tmp_path: Path) -> None:
    there = Layout(tmp_path / "there")
    with standalone(tmp_path / "cluster") as cluster:
        places = [Path(row["place"]) for row in run_a_job(cluster.master, tmp_path / "job")]
        told = run_an_experiment(SEVERAL, cluster.master, there, then=cluster.workers[0].kill)
    assert {place.relative_to(tmp_path / "cluster").parts[0] for place in places} == {"worker-0", "worker-1"}
    assert (told["runs"], told["failed"]) == (6, 0)
    assert sorted(entry.name for entry in there.runs.iterdir()) == sorted(
        path.stem for path in there.root.glob("analysed/*/*")
    )

    here = Layout(tmp_path / "here").make()
    experiment = Experiment.from_toml(SEVERAL)
    for number in range(len(experiment)):
        run = experiment.run(number)
        play(run, here, ["epicast"])
        analyse_small(run.name, Plan(here))
    for name in ("publications", "sends", "receptions", "deliveries", "parents", "views"):
        assert table(there, name) == table(here, name), name


def test_spark_connect_runs_the_same_job_and_an_experiment(tmp_path: Path) -> None:
    with connect_server(tmp_path) as master:
        run_a_job(master, tmp_path / "job")
        told = run_an_experiment(SMALL, master, Layout(tmp_path / "out"))
    assert (told["runs"], told["played"], told["failed"]) == (2, 2, 0)
    assert Path(told["report"]).exists()
