"""An experiment on a real cluster that loses a worker half-way: the same tables as on one machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from epicast.pipeline.analyse import Plan, analyse_small
from epicast.pipeline.layout import Layout
from epicast.pipeline.sweep.experiment import Experiment
from epicast.pipeline.sweep.play import play
from tests.pipeline.standalone import standalone

WAIT_S = 300
EXPERIMENT = """
title = "Small"
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


def table(layout: Layout, name: str) -> list[dict[str, object]]:
    """Of all runs, in an order that does not depend on who wrote it."""
    parts = [pq.read_table(folder, partitioning=None) for folder in sorted(layout.table(name, "").parent.glob("run=*"))]
    rows = pa.concat_tables(parts)
    return rows.sort_by([(column, "ascending") for column in rows.column_names]).to_pylist()  # type: ignore[no-any-return]


def test_a_sweep_on_a_cluster_that_loses_a_worker_gives_the_same_tables(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    layout = Layout(tmp_path / "cluster-out")
    with standalone(tmp_path / "cluster") as cluster:
        words = [
            "run",
            str(tmp_path / "small.toml"),
            "--out",
            str(layout.root),
            "--master",
            cluster.master,
            "--json",
            "-q",
        ]
        driver = subprocess.Popen(
            [sys.executable, "-m", "epicast.cli.main", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            deadline = time.monotonic() + WAIT_S
            while not (layout.runs.exists() and any(layout.runs.iterdir())):
                assert driver.poll() is None, driver.communicate()
                assert time.monotonic() < deadline, "no run was played"
                time.sleep(0.02)
            cluster.workers[0].kill()
            out, err = driver.communicate(timeout=WAIT_S)
        finally:
            driver.kill()
    assert (driver.returncode, err) == (0, "")
    told = json.loads(out)
    assert (told["runs"], told["failed"]) == (6, 0)
    assert sorted(entry.name for entry in layout.runs.iterdir()) == sorted(
        path.stem for path in layout.root.glob("analysed/*/*")
    )

    here = Layout(tmp_path / "here").make()
    experiment = Experiment.from_toml(EXPERIMENT)
    for number in range(len(experiment)):
        run = experiment.run(number)
        play(run, here, ["epicast"])
        analyse_small(run.name, Plan(here))
    for name in ("publications", "sends", "receptions", "deliveries", "parents", "views"):
        assert table(layout, name) == table(here, name), name
