"""DuckDB in this process and Spark judge alike: every bad history and every good one, by both engines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epicast.cli.main import run as epicast
from epicast.core.errors import EpicastError
from epicast.pipeline import session as session_module
from epicast.pipeline.analyse import analyse_runs
from epicast.pipeline.check import HERE_ROWS_MAX, HERE_RUNS_MAX, Found, check_here, choose, find_runs
from epicast.pipeline.judged import Gathered, Judged
from epicast.pipeline.layout import Layout
from epicast.pipeline.results import judged
from epicast.pipeline.small_runs import LARGE_ROWS, Plan
from tests.pipeline.bad_histories import BAD
from tests.pipeline.good_histories import GOOD

SOAK = bool(os.environ.get("EPICAST_SOAK"))
MAKE: dict[str, Callable[[], Any]] = {**BAD, **GOOD}


class Swept:
    """All histories as the runs of one sweep, and what Spark says of each."""

    def __init__(self, spark: SparkSession, folder: Path, large_rows: int) -> None:
        self.folder = folder
        for name, make in MAKE.items():
            make().history.save(folder / "runs" / name)
        found = find_runs(folder)
        plan = Plan(Layout(folder / "spark", runs_at=found.home), keep_tables=False, large_rows=large_rows)
        plan.layout.root.mkdir()
        self.answers = analyse_runs(spark, spark.createDataFrame(found.runs, "run string, rows long"), plan)
        rows: pa.Table = self.answers.toArrow()
        self.by_run = {name: rows.slice(at, 1) for at, name in enumerate(rows.column("run").to_pylist())}

    def of(self, name: str) -> list[Judged]:
        gathered = Gathered()
        gathered.add(self.by_run[name])
        return gathered.judged()

    def here(self, name: str) -> list[Judged]:
        return check_here(find_runs(self.folder / "runs" / name)).judged


@pytest.fixture(scope="module")
def swept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    return Swept(spark, tmp_path_factory.mktemp("histories"), LARGE_ROWS)


@pytest.fixture(scope="module")
def swept_by_all(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """As if every run were too large for a task: all executors together answer."""
    return Swept(spark, tmp_path_factory.mktemp("histories"), -1)


@pytest.mark.parametrize("name", MAKE)
def test_both_engines_judge_a_history_alike(swept: Swept, name: str) -> None:
    ours = swept.here(name)
    assert ours == swept.of(name)
    assert any(each.violations for each in ours) == (name in BAD)


@pytest.mark.skipif(not SOAK, reason="takes minutes: make soak")
@pytest.mark.parametrize("name", MAKE)
def test_a_history_is_judged_alike_by_all_executors_together(swept_by_all: Swept, name: str) -> None:
    assert swept_by_all.here(name) == swept_by_all.of(name)


def test_both_engines_add_up_a_sweep_alike(swept: Swept) -> None:
    """All but the examples, of which each engine shows the ones it saw first."""
    ours = check_here(find_runs(swept.folder))
    theirs = judged(swept.answers)
    assert [_without_examples(each) for each in ours.judged] == [_without_examples(each) for each in theirs]
    assert [len(each.examples) for each in ours.judged] == [len(each.examples) for each in theirs]
    assert (ours.runs, ours.unanalysed, ours.broken) == (len(MAKE), [], True)


def _without_examples(each: Judged) -> dict[str, Any]:
    return {name: value for name, value in vars(each).items() if name != "examples"}


@pytest.mark.parametrize("name", ["a_hole", "nothing_at_all"])
def test_the_command_says_the_same_with_either_engine_and_which_one_it_was(
    spark: SparkSession,
    swept: Swept,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def shared(master: str | None = None, *, ui: bool = False) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session_module, "session", shared)
    told, codes = {}, {}
    for engine in ("duckdb", "spark"):
        codes[engine] = epicast(["check", str(swept.folder / "runs" / name), "--json", "--engine", engine])
        told[engine] = json.loads(capsys.readouterr().out)
        assert told[engine].pop("engine") == engine
    assert told["duckdb"] == told["spark"]
    assert codes["duckdb"] == codes["spark"] == (1 if name in BAD else 0)


# Which engine


@pytest.mark.parametrize(
    ("asked", "rows", "runs", "cluster", "expected"),
    [
        ("auto", HERE_ROWS_MAX, 1, False, "duckdb"),
        ("auto", HERE_ROWS_MAX + 1, 1, False, "spark"),
        ("auto", 0, HERE_RUNS_MAX, False, "duckdb"),
        ("auto", 0, HERE_RUNS_MAX + 1, False, "spark"),
        ("auto", 10, 1, True, "spark"),
        ("spark", 10, 1, False, "spark"),
        ("duckdb", HERE_ROWS_MAX + 1, 1, False, "duckdb"),
    ],
)
def test_small_runs_are_judged_here_and_large_ones_by_spark(
    asked: str, rows: int, runs: int, cluster: bool, expected: str
) -> None:
    found = Found(Path("runs"), [("first", rows), *((str(number), 0) for number in range(runs - 1))])
    engine, why = choose(asked, found, cluster=cluster)
    assert engine == expected
    assert bool(why) == (asked == "auto" and expected == "spark" and not cluster)


@pytest.mark.parametrize(
    ("asked", "cluster", "said"),
    [("polars", False, "expected auto, duckdb or spark, got 'polars'"), ("duckdb", True, "leave out --master")],
)
def test_an_engine_that_cannot_judge_is_refused(asked: str, cluster: bool, said: str) -> None:
    with pytest.raises(EpicastError, match=said):
        choose(asked, Found(Path("runs"), [("first", 1)]), cluster=cluster)
