"""The results of the pipeline's benchmark, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from epicast.cli import formats as f
from epicast.cli.benchmarks.pipeline_job import Job, Result
from epicast.cli.benchmarks.pipeline_verdict import TARGETS, processor_ratios, ratios
from epicast.cli.benchmarks.report import machine, new_table, title, verdict_table
from epicast.cli.benchmarks.verdict import verdicts

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Samples = Mapping[Job, list[Result]]


def as_dict(rows: int, runs: int, samples: Samples, differences: list[str]) -> dict[str, Any]:
    results = {job: middle(found) for job, found in samples.items()}
    measured = ratios(results)
    return {
        "machine": machine("duckdb", "pyspark"),
        "rows": rows,
        "runs": runs,
        "measurements": [_measurement(job, result, samples[job]) for job, result in results.items()],
        "answers_equal": not differences,
        "differences": differences[:20],
        "ratios": measured,
        "processor_ratios": processor_ratios(results),
        "targets": verdicts(measured, TARGETS),
    }


def middle(results: list[Result]) -> Result:
    """The median by the clock on the wall."""
    ordered = sorted(results, key=lambda result: result.seconds)
    return ordered[(len(ordered) - 1) // 2]


def _measurement(job: Job, result: Result, samples: list[Result]) -> dict[str, Any]:
    return {
        "data": job.data,
        "way": job.way,
        "cores": job.cores,
        **msgspec.to_builtins(result),
        "rows_per_second": round(result.rows / result.seconds) if result.seconds else 0,
        "seconds_of_all": [round(sample.seconds, 3) for sample in samples],
    }


def view(report: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    facts = report["machine"]
    versions = f"DuckDB {facts['duckdb']} · Spark {facts['pyspark']}"
    equal = "All ways gave the same answers." if report["answers_equal"] else "[red]The answers differ:[/]"
    return Group(
        Text(f"{title(facts)} · {versions}", style="bold"),
        _measurements(report["measurements"]),
        verdict_table(f"{report['rows']:,} rows, also as {report['runs']} runs", report["targets"]),
        Text.from_markup(equal),
        *(Text(difference) for difference in report["differences"]),
    )


def _measurements(rows: list[dict[str, Any]]) -> Table:
    table = new_table("measurement", "seconds", "processor", "rows/s", "start", "warm-up", "memory", "load")
    for row in rows:
        job = Job(row["way"], row["data"], "", row["cores"])
        made = row["way"] == "make"
        table.add_row(
            job.name,
            f"{row['seconds']:.1f} s",
            _seconds(row["processor_seconds"]),
            f.rate(row["rows_per_second"]),
            f.DASH if row["way"] != "spark" else _seconds(row["session_seconds"]),
            f.DASH if made else _seconds(row["warm_up_seconds"]),
            f.size(sum(row["peak_bytes"].values()) or None),
            f.DASH if made else f.number(row["load"], 1),
        )
    return table


def _seconds(value: float | None) -> str:
    return f.DASH if value is None else f"{value:.1f} s"
