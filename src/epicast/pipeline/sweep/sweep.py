"""The sweep: a row per run, a Spark task per row. Only the rows' numbers travel: executors work out the rest."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from epicast.core.errors import EpicastError
from epicast.pipeline.journal import Progress, watched
from epicast.pipeline.layout import Layout
from epicast.pipeline.sweep.experiment import Experiment
from epicast.pipeline.sweep.play import FAILED, play
from epicast.trace import lock
from epicast.trace.files import write_text

SCHEMA = (
    "run string, number long, point int, labels map<string, string>, seed long, status string, reason string, rows long"
)
_ARROW = pa.schema(
    {
        "run": pa.string(),
        "number": pa.int64(),
        "point": pa.int32(),
        "labels": pa.map_(pa.string(), pa.string()),
        "seed": pa.int64(),
        "status": pa.string(),
        "reason": pa.string(),
        "rows": pa.int64(),
    }
)
ROWS_PER_FILE = 10_000


@dataclass(frozen=True)
class Failure:
    run: str
    point: str
    seed: int
    reason: str


@dataclass(frozen=True)
class Swept:
    runs: int
    played: int  # in this sweep; the others were there
    failed: int
    failures: tuple[Failure, ...]  # the first ones


def sweep(
    spark: SparkSession,
    experiment: Experiment,
    layout: Layout,
    command: list[str],
    on_progress: Progress | None = None,
) -> Swept:
    """Play what is not there yet. The table of runs is written when all tasks have ended."""
    if not len(experiment):
        raise EpicastError("the sweep is empty: give it at least one seed and one value per axis")
    experiment.points()  # complain here, not on an executor
    claim = _claim(layout)
    try:
        write_text(layout.experiment, experiment.to_toml())
        work = partial(_play_all, spark, experiment, layout, command)
        watched(work, spark, layout.journal, len(experiment), on_progress)
        shutil.rmtree(layout.unfinished, ignore_errors=True)
        return _outcome(runs(spark, layout), len(experiment))
    finally:
        lock.release(claim)


def runs(spark: SparkSession, layout: Layout) -> DataFrame:
    """One row per run of the sweep."""
    if not layout.sweep.exists():
        raise EpicastError(f"{layout.root} holds no finished sweep: run it first")
    return spark.read.schema(SCHEMA).parquet(str(layout.sweep))


def _claim(layout: Layout) -> int:
    claim = lock.acquire(layout.make().root)
    if claim is None:
        raise EpicastError(f"another sweep is writing in {layout.root}: wait for it or choose another --out")
    return claim


def _play_all(spark: SparkSession, experiment: Experiment, layout: Layout, command: list[str]) -> None:
    text, count = experiment.to_toml(), len(experiment)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = Experiment.from_toml(text)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(mine, number, layout, command)

    rows = spark.range(0, count, 1, count).mapInArrow(work, SCHEMA)
    # Through a shuffle, so that the tasks stay one run each and the files do not become as many.
    rows.repartition(1 + count // ROWS_PER_FILE).write.mode("overwrite").parquet(str(layout.sweep))


def _row(experiment: Experiment, number: int, layout: Layout, command: list[str]) -> pa.RecordBatch:
    run = experiment.run(number)
    outcome = play(run, layout, command)
    row = {
        "run": run.name,
        "number": run.number,
        "point": run.point.number,
        "labels": list(run.point.labels.items()),
        "seed": run.seed,
        "status": outcome.status,
        "reason": outcome.reason,
        "rows": outcome.rows,
    }
    return pa.RecordBatch.from_pylist([row], _ARROW)


def _outcome(table: DataFrame, count: int) -> Swept:
    counts = {row["status"]: row["count"] for row in table.groupBy("status").count().collect()}
    failed = table.where(f"status = '{FAILED}'").orderBy("number").limit(20).collect()
    return Swept(
        runs=count,
        played=counts.get("done", 0),
        failed=counts.get(FAILED, 0),
        failures=tuple(Failure(row["run"], _shown(row["labels"]), row["seed"], row["reason"]) for row in failed),
    )


def _shown(labels: dict[str, str]) -> str:
    return ", ".join(f"{axis} {label}" for axis, label in labels.items())
