"""The analysis of many runs: a task each for those that fit into one, all executors together for those that do not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from epicast.core.errors import EpicastError
from epicast.pipeline import analysis
from epicast.pipeline.journal import Progress, watched
from epicast.pipeline.small_runs import Plan, analyse_small
from epicast.trace.run import RunFolder

RUNS_PER_FILE = 1000


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


def _analyse_large(spark: SparkSession, name: str, plan: Plan) -> str:
    """All executors together; the answer is kept where the row's task will look for it. Returns what went wrong."""
    from epicast.pipeline.spark_sql import SparkKernel

    if analysis.load(plan.file(name)) is not None:
        return ""
    try:
        run = RunFolder.open(plan.layout.run(name)).require_complete()
        with SparkKernel(spark, run, plan.layout.scratch) as kernel:
            analysis.save(analysis.analyse(kernel, run, name, plan.tables(name), plan.extra), plan.file(name))
    except EpicastError as error:
        return str(error)
    return ""
