"""The results of the benchmark of live messaging, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from epicast.cli import formats as f
from epicast.cli.benchmarks.live_job import PROCESSES, Job, Result
from epicast.cli.benchmarks.live_plan import Plan
from epicast.cli.benchmarks.live_slices import STOLEN_MAX
from epicast.cli.benchmarks.live_systems import OTHERS, SYSTEMS, versions_of
from epicast.cli.benchmarks.live_verdict import TARGETS, by_cell, costs, middle, ratios
from epicast.cli.benchmarks.report import machine, new_table, title, verdict_table
from epicast.cli.benchmarks.verdict import verdicts

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Samples = Mapping[Job, list[Result]]


def as_dict(plan: Plan, samples: Samples) -> dict[str, Any]:
    results = {job: middle(found) for job, found in samples.items()}
    measured = ratios(results)
    versions = versions_of("uvloop")
    for system in plan.systems:
        versions |= SYSTEMS[system].versions()
    return {
        "machine": machine(),
        "versions": versions,
        "quick": plan.quick,
        "rounds": plan.rounds,
        "processes": {"publishers": 1, "subscribers": PROCESSES},
        "missing": plan.missing,
        "measurements": [_measurement(job, result, samples[job]) for job, result in results.items()],
        "ratios_by_cell": {other: by_cell(results, other) for other in OTHERS if other in plan.systems},
        "costs_by_cell": costs(results),
        "ratios": measured,
        "targets": verdicts(measured, TARGETS),
    }


def _measurement(job: Job, result: Result, samples: list[Result]) -> dict[str, Any]:
    speed = result.per_second
    return {
        "system": job.system,
        "subscribers": job.subscribers,
        "payload_bytes": job.payload_bytes,
        "rate": job.rate,
        **msgspec.to_builtins(result),
        "valid": result.valid,
        "deliveries_per_second": None if speed is None else round(speed),
        "deliveries_per_second_of_all": [round(each.per_second or 0) for each in samples],
    }


def view(report: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(
        Text(title(report["machine"]), style="bold"),
        Text(" · ".join(f"{name} {number}" for name, number in report["versions"].items())),
        _measurements(report["measurements"]),
        *_ratio_tables(report),
        Text(_disturbance(report["measurements"])),
        verdict_table(f"medians of {report['rounds']} rounds", report["targets"]),
        *(Text(f"not measured: {name}: {why}") for name, why in report["missing"].items()),
    )


def _measurements(rows: list[dict[str, Any]]) -> Table:
    table = new_table("subscribers", "payload", "system", "deliveries", "rate", "p50", "p99", "CPU", "fault")
    table.columns[0].no_wrap, table.columns[-1].no_wrap = True, False
    previous = None
    for row in rows:
        cell = (f.count(row["subscribers"]), f.size(row["payload_bytes"]))
        if previous not in (None, cell):
            table.add_section()
        table.add_row(
            *(cell if cell != previous else ("", "")),
            row["system"],
            f.rate(row["deliveries_per_second"]),
            f.rate(row["rate"]),
            _ms(row["p50_us"]),
            _ms(row["p99_us"]),
            f.number(row["cpu_ms_per_1000"], 1),
            "" if row["valid"] else _fault(row),
        )
        previous = cell
    table.caption = "p50 and p99 of latency at this rate of messages; CPU: ms per 1,000 deliveries, all processes"
    return table


def _disturbance(rows: list[dict[str, Any]]) -> str:
    """By the host of a virtual machine."""
    stolen, left_out = max((row["stolen"] for row in rows), default=0.0), sum(row["left_out"] for row in rows)
    return (
        f"Latency: the host took at most {stolen:.1%} of the processors away in the seconds that count; "
        f"{left_out:,} more were left out, since it took more than {STOLEN_MAX:.0%}."
    )


def _ratio_tables(report: dict[str, Any]) -> list[Table]:
    found = []
    for other, cells in report["ratios_by_cell"].items():
        if cells:
            found.append(_ratio_table(f"epicast over {other}", cells))
    for variant, cells in report["costs_by_cell"].items():
        found.append(_ratio_table(f"{variant} over epicast", cells))
    return found


def _ratio_table(heading: str, cells: dict[str, dict[str, float]]) -> Table:
    table = new_table(heading, "deliveries", "p50", "p99", "p99 of a second", "CPU")
    for cell, values in cells.items():
        table.add_row(
            cell, *(f.number(values.get(name)) for name in ("throughput", "p50", "p99", "p99_of_second", "cpu"))
        )
    return table


def _ms(us: float | None) -> str:
    return f.DASH if us is None else f"{us / 1000:,.2f} ms"


def _fault(row: dict[str, Any]) -> str:
    return Result(lost=row["lost"], duplicates=row["duplicates"], error=row["error"]).outcome
