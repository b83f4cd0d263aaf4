"""Runs the cases of a plan in turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import msgspec

from epicast.cli.benchmarks.job import Job, Result
from epicast.cli.benchmarks.plan import Case
from epicast.core.errors import EpicastError

Samples = dict[Job, list[Result]]
Report = Callable[[int, int, Job, Result], None]
"""Is told how many runs are done, of how many, and the one that was just made."""


def run_cases(cases: Sequence[Case], report: Report) -> Samples:
    samples: Samples = {case.job: [] for case in cases}
    total = sum(case.rounds for case in cases)
    done = 0
    for turn in range(max(case.rounds for case in cases)):
        for case in cases:
            if turn < case.rounds:
                result = run_job(case.job)
                samples[case.job].append(result)
                done += 1
                report(done, total, case.job, result)
    return samples


def run_job(job: Job) -> Result:
    """In a process of its own."""
    worker = [sys.executable, "-m", "epicast.cli.benchmarks.worker", msgspec.json.encode(job).decode()]
    done = subprocess.run(worker, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise EpicastError(f"the measurement of {job.name} failed: {last}")
    return msgspec.json.decode(done.stdout, type=Result)


def middle(results: Sequence[Result]) -> Result:
    """The median by processor time."""
    ordered = sorted(results, key=lambda result: result.cpu_seconds)
    return ordered[(len(ordered) - 1) // 2]
