"""Measures the pipeline: makes the runs, has them analysed in every way, and compares times and answers.

Every measurement is a process of its own. All ways write the same tables and give the same answers.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from epicast.cli.benchmarks import pipeline_report
from epicast.cli.benchmarks.pipeline_answers import differences
from epicast.cli.benchmarks.pipeline_job import Job, Result
from epicast.core.errors import EpicastError

ROWS, RUNS, ROWS_MIN = 50_000_000, 20, 20_000
CORES = 2

Tell = Callable[[int, int, Job, Result], None]
"""Is told how many jobs are done, of how many, and the one that was just done."""


def measure(rows: int, rounds: int, tell: Tell, runs: int = RUNS) -> dict[str, Any]:
    with TemporaryDirectory(prefix="epicast-bench-") as home:
        jobs, makers = analyses(home), _makers(home, rows, runs)
        samples: dict[Job, list[Result]] = {job: [] for job in (*makers, *jobs)}
        total = len(makers) + rounds * len(jobs)
        with ThreadPoolExecutor(CORES) as pool:
            for done, (job, result) in enumerate(zip(makers, pool.map(run_job, makers), strict=True), 1):
                samples[job].append(result)
                tell(done, total, job, result)
        for done, job in enumerate(rounds * jobs, len(makers) + 1):
            samples[job].append(run_job(job))
            shutil.rmtree(job.out, ignore_errors=True)
            tell(done, total, job, samples[job][-1])
        return pipeline_report.as_dict(rows, runs, samples, _disagreements(jobs))


def _makers(home: str, rows: int, runs: int) -> list[Job]:
    many = Job("make", "many", home, runs=runs, rows=-(-rows // runs))
    return [many, Job("make", "large", home, rows=rows)]


def analyses(home: str) -> list[Job]:
    """Those that are compared come one after the other."""
    return [
        Job("duckdb", "many", home, CORES),
        Job("spark", "many", home, CORES),
        Job("spark", "many", home, 1),
        Job("duckdb", "large", home, CORES),
        Job("spark", "large", home, CORES),
    ]


def _disagreements(jobs: list[Job]) -> list[str]:
    """What any other way found differently from DuckDB."""
    standard = {job.data: job.answers for job in jobs if job.way == "duckdb"}
    return [
        f"{job.name}: {difference}"
        for job in jobs
        if job.way == "spark"
        for difference in differences(standard[job.data], job.answers)
    ]


def run_job(job: Job) -> Result:
    worker = [sys.executable, "-m", "epicast.cli.benchmarks.pipeline_worker", msgspec.json.encode(job).decode()]
    done = subprocess.run(worker, capture_output=True, text=True, check=False, cwd=_folder(job))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise EpicastError(f"the measurement of {job.name} failed: {last}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Result)


def _folder(job: Job) -> Path:
    """Spark leaves files in the folder in which it starts."""
    return Path(job.home)
