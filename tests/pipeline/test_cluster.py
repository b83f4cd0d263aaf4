"""The same job on a real cluster and behind Spark Connect: executors get epicast sent, and a dead one is replaced."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epicast.stacks import stack
from tests.pipeline.standalone import connect_server, standalone

WAIT_S = 180
EXPERIMENT = """
title = "Small"
seeds = 2
[scenario]
stack = "brisa"
nodes = 16
"""
JOB = Path(__file__).with_name("cluster_job.py")  # a program of its own


class Driver:
    def __init__(self, master: str, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        command = [sys.executable, str(JOB), master, str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_for_both_tasks(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while not all((self.folder / f"started-{part}-0").exists() for part in (0, 1)):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, f"started: {sorted(self.folder.iterdir())}"
            time.sleep(0.05)

    def go(self) -> dict[str, Any]:
        (self.folder / "go").touch()
        out, err = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0, err.decode()
        assert err == b""
        answer = json.loads(out)
        assert isinstance(answer, dict)
        return answer


@contextmanager
def driver(master: str, folder: Path) -> Iterator[Driver]:
    made = Driver(master, folder)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def check_that_epicast_was_sent(rows: list[dict[str, Any]]) -> None:
    assert sorted(row["part"] for row in rows) == [0, 1]
    for row in rows:
        assert "epicast.zip" in row["package"]
        assert row["stacks"].split() == stack.names()


def test_a_cluster_runs_a_job_on_all_executors_and_survives_the_death_of_one(tmp_path: Path) -> None:
    with standalone(tmp_path / "cluster") as cluster:
        with driver(cluster.master, tmp_path / "whole") as job:
            job.wait_for_both_tasks()
            answer = job.go()
        check_that_epicast_was_sent(answer["rows"])
        assert {Path(row["place"]).relative_to(tmp_path / "cluster").parts[0] for row in answer["rows"]} == {
            "worker-0",
            "worker-1",
        }
        assert answer["zone"] == "UTC"

        with driver(cluster.master, tmp_path / "halved") as job:
            job.wait_for_both_tasks()
            cluster.workers[0].kill()
            rows = job.go()["rows"]
        check_that_epicast_was_sent(rows)
        assert sorted(row["attempt"] for row in rows) == [0, 1]
        assert all("worker-1" in Path(row["place"]).parts for row in rows)


def test_spark_connect_runs_the_same_job_and_an_experiment(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    words = ["run", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--json", "-q", "--master"]
    with connect_server(tmp_path) as master:
        with driver(master, tmp_path / "job") as job:
            job.wait_for_both_tasks()
            answer = job.go()
        command = [sys.executable, "-m", "epicast.cli.main", *words, master]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    check_that_epicast_was_sent(answer["rows"])
    assert answer["zone"] == "UTC"
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["runs"], told["played"], told["failed"]) == (2, 2, 0)
    assert Path(told["report"]).exists()
