"""Runs one job of the benchmark in this process and prints its result: nothing is left over from another one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from epicast.cli.benchmarks.pipeline_job import WARM_UP_ROWS, Job, Result
from epicast.cli.benchmarks.pipeline_processes import peak_bytes, processor_seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from epicast.pipeline.session import Spark

LARGE_MEMORY_MB = 8192
"""Of DuckDB for the large run: twenty times the rows of a task, four times its memory."""


def perform(job: Job) -> Result:
    ways = {"make": _make, "duckdb": _with_duckdb, "spark": _with_spark}
    return ways[job.way](job)


def _make(job: Job) -> Result:
    from epicast.cli.benchmarks.pipeline_trace import Shape, make_run

    started = perf_counter()
    shape = Shape.of_rows(job.rows)
    rows = sum(make_run(job.runs_at / f"run-{number:03}", shape, seed=number) for number in range(job.runs))
    return Result(rows, perf_counter() - started)


def make_warm_up(job: Job) -> None:
    """As many small runs as there are cores, so that all of them get warm."""
    from epicast.cli.benchmarks.pipeline_trace import Shape, make_run

    for number in range(job.cores):
        run = job.warm_up_at / f"run-{number:03}"
        if not run.exists():
            make_run(run, Shape.of_rows(WARM_UP_ROWS), seed=number)


def _rows_of(runs_at: Path) -> dict[str, int]:
    from epicast.trace import info

    return {run.name: info.load(run).rows for run in sorted(runs_at.iterdir())}


# One after the other in this process


def _with_duckdb(job: Job) -> Result:
    def analyse(runs_at: Path, out: Path) -> list[pa.Table]:
        return [_by_duckdb(runs_at / name, out, job) for name in _rows_of(runs_at)]

    return _timed(job, analyse)


def _by_duckdb(path: Path, out: Path, job: Job) -> pa.Table:
    from epicast.pipeline import analysis
    from epicast.pipeline.duck import DuckKernel
    from epicast.pipeline.layout import Layout
    from epicast.pipeline.small_runs import TASK_MEMORY_MB
    from epicast.trace.run import RunFolder

    layout, run = Layout(out), RunFolder.open(path).require_complete()
    memory_mb = TASK_MEMORY_MB if job.data == "many" else LARGE_MEMORY_MB
    with DuckKernel(run, threads=job.cores, memory_mb=memory_mb, spill=layout.scratch) as kernel:
        return analysis.analyse(kernel, run, path.name, lambda table: layout.table(table, path.name))


# As the pipeline does it


def _with_spark(job: Job) -> Result:
    from epicast.pipeline.session import session

    started = perf_counter()
    with session(f"local[{job.cores}]") as spark:
        session_seconds = perf_counter() - started

        def analyse(runs_at: Path, out: Path) -> list[pa.Table]:
            return [_by_spark(spark, runs_at, out, job)]

        return msgspec.structs.replace(_timed(job, analyse), session_seconds=session_seconds)


def _by_spark(spark: Spark, runs_at: Path, out: Path, job: Job) -> pa.Table:
    from epicast.pipeline.analyse import analyse_runs
    from epicast.pipeline.layout import Layout
    from epicast.pipeline.small_runs import LARGE_ROWS, Plan

    frame = spark.createDataFrame(list(_rows_of(runs_at).items()), "run string, rows long")
    plan = Plan(Layout(out, runs_at=runs_at).make(), large_rows=LARGE_ROWS if job.data == "many" else 0)
    return analyse_runs(spark, frame, plan).toArrow()


# Either way


def _timed(job: Job, analyse: Callable[[Path, Path], list[pa.Table]]) -> Result:
    make_warm_up(job)
    started = perf_counter()
    analyse(job.warm_up_at, job.out / "warm-up")
    warm, warm_processor = perf_counter(), processor_seconds()
    answers = analyse(job.runs_at, job.out / "measured")
    seconds, processor = perf_counter() - warm, processor_seconds()
    _keep(answers, job.answers)
    return Result(
        sum(_rows_of(job.runs_at).values()),
        seconds,
        None if processor is None or warm_processor is None else processor - warm_processor,
        warm_up_seconds=warm - started,
        peak_bytes=peak_bytes(),
        load=os.getloadavg()[0],
    )


def _keep(answers: list[pa.Table], file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from epicast.pipeline import analysis

    pq.write_table(pa.concat_tables(table.cast(analysis.SCHEMA) for table in answers).sort_by("run"), file)


def main() -> None:
    job = msgspec.json.decode(sys.argv[1], type=Job)
    print(msgspec.json.encode(perform(job)).decode())


if __name__ == "__main__":
    main()
