"""A large trace is read in slices: every row once, and the answers are those of one piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from epicast.cli.benchmarks.pipeline_trace import Shape, make_run
from epicast.core.errors import EpicastError
from epicast.pipeline import analysis
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.slices import Slice, answer, slices_of
from epicast.pipeline.spark_sql import SparkKernel
from epicast.trace.read import read_events
from epicast.trace.run import RunFolder

GROUP_ROWS = 1000


def cut(run: RunFolder) -> RunFolder:
    """The same events in three files of many small groups of rows."""
    events = read_events(run.path)
    for file in run.event_files():
        file.unlink()
    size = -(-events.num_rows // 3)
    for number in range(3):
        part = events.slice(number * size, size)
        pq.write_table(part, run.path / "events" / f"part-{number:05}.parquet", row_group_size=GROUP_ROWS)
    return RunFolder.open(run.path).require_complete()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("slices") / "run"
    make_run(path, Shape(nodes=20, messages=60), seed=3)
    return cut(RunFolder.open(path))


def rows_of(part: Slice, folder: Path) -> list[int]:
    answer(part, {}, "SELECT row FROM events", folder / "answer.parquet")
    return pq.read_table(folder / "answer.parquet").column("row").to_pylist()


def test_slices_hold_every_row_once(run: RunFolder, tmp_path: Path) -> None:
    slices = slices_of(run.event_files(), 2 * GROUP_ROWS)
    assert len(slices) > 3
    found = [rows_of(part, tmp_path) for part in slices]
    assert sorted(row for rows in found for row in rows) == list(range(run.info.rows))
    assert max(map(len, found)) <= 2 * GROUP_ROWS


def test_rows_out_of_order_are_in_some_slice_too(tmp_path: Path) -> None:
    shuffled = np.random.default_rng(1).permutation(5000)
    pq.write_table(pa.table({"row": shuffled}), tmp_path / "part.parquet", row_group_size=GROUP_ROWS)
    found = [row for part in slices_of([tmp_path / "part.parquet"], GROUP_ROWS) for row in rows_of(part, tmp_path)]
    assert sorted(found) == list(range(5000))


def test_a_file_that_does_not_tell_its_numbers_is_one_slice(tmp_path: Path) -> None:
    file = tmp_path / "part.parquet"
    pq.write_table(pa.table({"row": range(5000)}), file, row_group_size=GROUP_ROWS, write_statistics=False)
    assert slices_of([file], GROUP_ROWS) == [Slice(str(file), None, None)]


def test_a_question_may_name_other_tables(run: RunFolder, tmp_path: Path) -> None:
    part, *_ = slices_of(run.event_files(), run.info.rows)
    sql = "SELECT count(*) AS n FROM events AS e JOIN nodes AS n ON n.node = e.node WHERE e.kind = 'join'"
    answer(part, {"nodes": [str(run.nodes_file)]}, sql, tmp_path / "answer.parquet")
    assert pq.read_table(tmp_path / "answer.parquet").to_pylist() == [{"n": 20}]


def test_a_damaged_slice_is_named(tmp_path: Path) -> None:
    (tmp_path / "part.parquet").write_bytes(b"nonsense")
    with pytest.raises(EpicastError, match=r"cannot analyse .*part\.parquet"):
        answer(Slice(str(tmp_path / "part.parquet"), None, None), {}, "SELECT 1 AS one", tmp_path / "answer.parquet")


def test_slices_and_one_piece_give_the_same_answers_and_tables(
    spark: SparkSession, run: RunFolder, tmp_path: Path
) -> None:
    with DuckKernel(run) as kernel:
        whole = analysis.analyse(kernel, run, "a", lambda name: tmp_path / "whole" / name)
    with SparkKernel(spark, run, tmp_path / "scratch", slice_rows=3 * GROUP_ROWS) as kernel_of_slices:
        sliced = analysis.analyse(kernel_of_slices, run, "a", lambda name: tmp_path / "sliced" / name)
    assert sliced.drop(["metrics"]).to_pylist() == whole.drop(["metrics"]).to_pylist()
    assert dict(sliced["metrics"][0].as_py()) == pytest.approx(dict(whole["metrics"][0].as_py()), rel=1e-12)
    for name in ("sends", "receptions", "deliveries"):
        tables = [pq.read_table(tmp_path / how / name, partitioning=None) for how in ("whole", "sliced")]
        assert tables[0].num_rows > 0
        assert len(list((tmp_path / "sliced" / name).glob("*.parquet"))) > 1
        assert tables[0].sort_by("row").equals(tables[1].sort_by("row").cast(tables[0].schema)), name


def test_what_a_task_says_about_a_damaged_trace_reaches_the_user(
    spark: SparkSession, run: RunFolder, tmp_path: Path
) -> None:
    with SparkKernel(spark, run, tmp_path / "scratch") as kernel:
        kernel._slices = [replace(kernel._slices[0], file=str(tmp_path / "lost.parquet"))]
        with pytest.raises(EpicastError, match=r"cannot analyse .*lost\.parquet"):
            kernel.gather("n", "SELECT count(*) AS n FROM events")
