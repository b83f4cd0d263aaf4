"""The analysis of many runs: a task each for those that fit into one, all executors together for those that do not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from epicast.core.errors import EpicastError
from epicast.pipeline import analysis
from epicast.pipeline.code_version import ANALYSIS, code_version
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.journal import Progress, watched
from epicast.pipeline.layout import Layout
from epicast.trace.run import RunFolder

LARGE_ROWS = 20_000_000
"""A run above this goes through Spark SQL: measured, a task takes half a minute and 2 GB for one that is just below."""
TASK_MEMORY_MB = 2048
RUNS_PER_FILE = 1000


@dataclass(frozen=True)
class Plan:
    """How runs are to be analysed; travels to the executors."""

    layout: Layout
    keep_tables: bool = True
    large_rows: int = LARGE_ROWS
    broken: Mapping[str, str] = field(default_factory=dict)  # large runs that could not be analysed, and why
    extra: tuple[str, ...] = ()  # what is measured on top, see `kernel.EXTRAS`

    def file(self, run: str) -> Path:
        return self.layout.analysed("+".join((code_version(ANALYSIS), *sorted(self.extra))), run)


def analyse_runs(spark: SparkSession, runs: DataFrame, plan: Plan, on_progress: Progress | None = None) -> DataFrame:
    """From one row per run (`run`, `rows`) to one row per run of `analysis.SCHEMA`, of all that are in `runs`."""
    count, answers = runs.count(), str(plan.layout.answers)
    watched(
        lambda: _answers(spark, runs, plan, count).write.mode("overwrite").parquet(answers),
        spark,
        plan.layout.journal,
        count,
        on_progress,
    )
    shutil.rmtree(plan.layout.scratch, ignore_errors=True)
    return spark.read.schema(from_arrow_schema(analysis.SCHEMA)).parquet(answers)


def _answers(spark: SparkSession, runs: DataFrame, plan: Plan, count: int) -> DataFrame:
    named = runs.select("run", "rows")
    large = [row["run"] for row in named.where(F.col("rows") > plan.large_rows).collect()]  # few: each takes long
    reasons = {name: _analyse_large(spark, name, plan) for name in large}
    plan = replace(plan, broken={name: reason for name, reason in reasons.items() if reason})
    # One task per run, and few files of what they answer. A window without groups makes Spark Connect warn.
    in_order = Window.partitionBy(F.lit(0)).orderBy("run")
    numbered = named.select("run", (F.row_number().over(in_order) - 1).alias("number"))
    spread = numbered.repartitionById(max(1, count), F.col("number")).select("run")
    found = spread.mapInArrow(_worker(plan), from_arrow_schema(analysis.SCHEMA))
    return found.repartition(1 + count // RUNS_PER_FILE)


def _worker(plan: Plan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch.column(0).to_pylist():
                found = analyse_small(name, plan)
                plan.layout.journal.note(name, failed=found.column("error")[0].is_valid)
                yield from found.to_batches()

    return work


def analyse_small(name: str, plan: Plan) -> pa.Table:
    """In this process. What is wrong with one run is said in its row: the others go on."""
    known = analysis.load(plan.file(name))
    if known is not None:
        return known
    if name in plan.broken:
        return analysis.failed(name, plan.broken[name])
    try:
        run = RunFolder.open(plan.layout.run(name)).require_complete()
        with DuckKernel(run, memory_mb=TASK_MEMORY_MB, spill=plan.layout.scratch / f"{name}-{os.getpid()}") as kernel:
            found = analysis.analyse(kernel, run, name, _tables(plan, name), plan.extra)
        analysis.save(found, plan.file(name))
    except EpicastError as error:
        return analysis.failed(name, str(error))
    return found


def _analyse_large(spark: SparkSession, name: str, plan: Plan) -> str:
    """All executors together; the answer is kept where the row's task will look for it. Returns what went wrong."""
    from epicast.pipeline.spark_sql import SparkKernel

    if analysis.load(plan.file(name)) is not None:
        return ""
    try:
        run = RunFolder.open(plan.layout.run(name)).require_complete()
        with SparkKernel(spark, run, plan.layout.scratch) as kernel:
            analysis.save(analysis.analyse(kernel, run, name, _tables(plan, name), plan.extra), plan.file(name))
    except EpicastError as error:
        return str(error)
    return ""


def _tables(plan: Plan, name: str) -> Callable[[str], Path] | None:
    return (lambda table: plan.layout.table(table, name)) if plan.keep_tables else None
