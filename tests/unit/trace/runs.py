"""Run folders for the tests of the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from epicast.core.records import Level
from epicast.trace.run import OpenRun, RunFolder
from epicast.trace.tables import Nodes, Snapshot
from tests.unit.trace.rows import batch, some_names, some_rows

SCENARIO = {"stack": "brisa", "nodes": 3}
TEXT = 'stack = "brisa"\nnodes = 3\n'
ROWS = 100


def start(path: Path, **changes: Any) -> OpenRun:
    given: dict[str, Any] = {
        "scenario": SCENARIO,
        "scenario_text": TEXT,
        "seed": 7,
        "level": Level.FULL,
        "engine": "pure",
        "command": ["epicast", "sim", "x.toml"],
    }
    return RunFolder.create(path, **given | changes)


def fill(run: OpenRun) -> None:
    """A bit of everything."""
    run.events(some_names()).write(batch(some_rows(ROWS)))
    run.write_snapshot(snapshot(5))
    run.write_snapshot(snapshot(9))
    run.write_nodes(nodes())


def complete(path: Path, **changes: Any) -> OpenRun:
    run = start(path, **changes)
    fill(run)
    run.finish({"sent": 12}, "d1935")
    return run


def snapshot(time_us: int) -> Snapshot:
    return Snapshot(time_us, "tree", "news", np.array([1, 2]), np.array([0, -1]), np.array([250, -1]))


def nodes() -> Nodes:
    return Nodes(np.array([0, 1]), ["a:1", "b:1"], ["eu", "us"], np.array([0, 5]), np.array([-1, 9]), ["", "crash"])
