"""A process that dies at any point leaves either a whole run or one that is not called complete."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epicast.core.errors import EpicastError
from epicast.trace import run
from epicast.trace.run import RunFolder
from epicast.trace.writer import TraceWriter
from tests.unit.trace.runs import ROWS, complete

PROJECT = Path(__file__).parents[3]


class Killed(BaseException):
    """Nothing handles it, so nothing is tidied up."""


class DeadlySystem:
    """Lets the process die just before one of its calls that change what is on disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, dies_at: int) -> None:
        self.calls, self.dies_at = 0, dies_at
        for name in ("replace", "fsync", "unlink"):
            monkeypatch.setattr(os, name, self.deadly(getattr(os, name)))

    def deadly(self, call: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*args: Any) -> None:
            if self.calls == self.dies_at:
                raise Killed
            self.calls += 1
            call(*args)

        return wrapped


@pytest.fixture(autouse=True)
def _many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TraceWriter", partial(TraceWriter, group_rows=16, part_rows=32))


def die_at_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, over_another: bool) -> Iterator[Path]:
    for step in range(1000):
        path = tmp_path / str(step)
        if over_another:
            complete(path)
        with monkeypatch.context() as patch:
            DeadlySystem(patch, step)
            try:
                complete(path, overwrite=True)
            except Killed:
                yield path
            else:
                return


def test_whenever_it_dies_only_a_whole_run_is_called_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = [status_left_in(path) for path in die_at_each_step(tmp_path, monkeypatch, over_another=False)]
    # In this order, and most of the time "running": only the very last step may come after completion.
    assert statuses == sorted(statuses, key=["none", "running", "complete"].index)
    assert statuses.count("running") > 10
    assert statuses.count("complete") == 1


def test_whenever_it_dies_over_another_run_only_a_whole_one_is_called_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = [status_left_in(path) for path in die_at_each_step(tmp_path, monkeypatch, over_another=True)]
    first, last = statuses.index("running"), len(statuses) - 1 - statuses[::-1].index("running")
    assert set(statuses[:first]) == {"complete"}  # the old one
    assert set(statuses[first : last + 1]) == {"running"}
    assert statuses[last + 1 :] == ["complete"]


def status_left_in(path: Path) -> str:
    """After a check that the folder tells no lie."""
    for table in path.rglob("*.parquet"):
        pq.read_table(table)
    try:
        left = RunFolder.open(path)
    except EpicastError:
        return "none"
    if left.info.status == "complete":
        assert left.require_complete().info.rows == ROWS
    return left.info.status


def child(script: str, path: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])}
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


WRITES_FOR_EVER = """
import sys
from pathlib import Path
from tests.unit.trace.rows import batch, some_names, some_rows
from tests.unit.trace.runs import snapshot, start

run = start(Path(sys.argv[1]))
events = run.events(some_names())
rows = batch(some_rows(100_000))
while True:
    events.write(rows)
    run.write_snapshot(snapshot(events.rows))
    if events.rows > 1_500_000:
        print("well under way", flush=True)
"""


def test_a_killed_process_leaves_a_run_that_is_not_complete_and_can_be_replaced(tmp_path: Path) -> None:
    process = child(WRITES_FOR_EVER, tmp_path)
    assert process.stdout is not None
    said = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert said == "well under way\n", errors
    assert list(tmp_path.rglob("*.parquet.tmp"))
    assert not list(tmp_path.rglob("*.parquet"))
    with pytest.raises(EpicastError, match=r"was killed: run it again$"):
        RunFolder.open(tmp_path).require_complete()
    complete(tmp_path)
    RunFolder.open(tmp_path).require_complete()
    assert not list(tmp_path.rglob("*.tmp"))


HAS_A_SMALL_DISK = """
import resource
import sys
from pathlib import Path
from epicast.core.errors import EpicastError
from tests.unit.trace.rows import batch, some_names, some_rows
from tests.unit.trace.runs import start

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with start(Path(sys.argv[1])) as run:
        events = run.events(some_names())
        rows = batch(some_rows(100_000))
        for _ in range(20):
            events.write(rows)
        run.finish({})
except EpicastError as error:
    print(error)
"""


def test_a_file_that_may_not_grow_leaves_an_incomplete_run(tmp_path: Path) -> None:
    said, errors = child(HAS_A_SMALL_DISK, tmp_path).communicate()
    assert said == f"cannot write the trace in {tmp_path / 'events'}: File too large\n", errors
    info = RunFolder.open(tmp_path).info
    assert info.status == "incomplete"
    assert info.reason.endswith("File too large")
    assert not list(tmp_path.rglob("part-*"))
