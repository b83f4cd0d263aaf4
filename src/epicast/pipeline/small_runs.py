"""The analysis of a run that fits into one task: DuckDB in this process, without Spark.

A task of Spark does this for each run of a sweep. `epicast check` does it for a few small runs: to start Spark would
take longer than to judge them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from epicast.core.errors import EpicastError
from epicast.pipeline import analysis
from epicast.pipeline.code_version import ANALYSIS, code_version
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.layout import Layout
from epicast.trace.run import RunFolder

LARGE_ROWS = 20_000_000
"""A run above this goes through Spark SQL: measured, a task takes half a minute and 2 GB for one that is just below."""
TASK_MEMORY_MB = 2048


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

    def tables(self, run: str) -> Callable[[str], Path] | None:
        """Where the tables of a run are kept."""
        return (lambda table: self.layout.table(table, run)) if self.keep_tables else None


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
            found = analysis.analyse(kernel, run, name, plan.tables(name), plan.extra)
        analysis.save(found, plan.file(name))
    except EpicastError as error:
        return analysis.failed(name, str(error))
    return found
