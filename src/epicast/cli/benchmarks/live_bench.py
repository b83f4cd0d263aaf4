"""Measures live messaging: every system in every cell, in rounds, so that what else the machine does hits all alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epicast.cli.benchmarks import live_report
from epicast.cli.benchmarks.live_job import Job, Result
from epicast.cli.benchmarks.live_measure import run_job
from epicast.cli.benchmarks.live_plan import Plan

Tell = Callable[[int, int, Job, Result], None]
"""Is told how many jobs are done, of how many, and the one that was just done."""


def measure(plan: Plan, tell: Tell) -> dict[str, Any]:
    jobs = plan.jobs()
    samples: dict[Job, list[Result]] = {job: [] for job in jobs}
    for done, job in enumerate(plan.rounds * jobs, 1):
        samples[job].append(run_job(job))
        tell(done, plan.rounds * len(jobs), job, samples[job][-1])
    return live_report.as_dict(plan, samples)
