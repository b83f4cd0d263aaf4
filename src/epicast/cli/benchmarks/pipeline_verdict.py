"""What the measurements of the pipeline come to: ratios of times by the clock on the wall, and targets."""

from __future__ import annotations

from collections.abc import Mapping

from epicast.cli.benchmarks.pipeline_job import Data, Job, Result, Way
from epicast.cli.benchmarks.verdict import Target

TARGETS = {
    "many_vs_duckdb": Target(1.2, False, "time of Spark for many runs over that of DuckDB, two cores each"),
    "large_vs_duckdb": Target(4.0, False, "time of Spark for one large run over that of DuckDB, two cores each"),
    "two_cores_vs_one": Target(1.7, True, "speed of Spark for many runs with two cores over that with one"),
}


def ratios(results: Mapping[Job, Result]) -> dict[str, float | None]:
    return _ratios({job: result.seconds for job, result in results.items()})


def processor_ratios(results: Mapping[Job, Result]) -> dict[str, float | None]:
    """The same of processor time, which other work on the machine disturbs less. Two cores ought to cost what one
    does."""
    return _ratios({job: result.processor_seconds for job, result in results.items()})


def _ratios(seconds: Mapping[Job, float | None]) -> dict[str, float | None]:
    known = {(job.way, job.data, job.cores): value for job, value in seconds.items()}

    def ratio(data: Data, over: tuple[Way, int], under: tuple[Way, int]) -> float | None:
        a, b = (known.get((way, data, cores)) for way, cores in (over, under))
        return round(a / b, 3) if a and b else None

    return {
        "many_vs_duckdb": ratio("many", ("spark", 2), ("duckdb", 2)),
        "large_vs_duckdb": ratio("large", ("spark", 2), ("duckdb", 2)),
        "two_cores_vs_one": ratio("many", ("spark", 1), ("spark", 2)),
    }
