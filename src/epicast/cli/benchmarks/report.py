"""The results of a benchmark, for programs and for people."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

import msgspec

from epicast import __version__
from epicast.cli import formats as f
from epicast.cli.benchmarks.job import Job, Result
from epicast.cli.benchmarks.plan import Plan
from epicast.cli.benchmarks.runner import Samples, middle
from epicast.cli.benchmarks.verdict import brisa_vs_flood_by_nodes, ratios, traced_vs_untraced, verdicts

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def machine(*packages: str) -> dict[str, Any]:
    """With the versions of these packages."""
    from importlib.metadata import version

    return {
        "epicast": __version__,
        **{package: version(package) for package in packages},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(named, platform.machine())
    except OSError:
        return platform.processor() or platform.machine()


def as_dict(plan: Plan, samples: Samples) -> dict[str, Any]:
    results = {job: middle(found) for job, found in samples.items()}
    measured = ratios(plan, results)
    return {
        "machine": machine("simpy"),
        "quick": plan.quick,
        "rounds": plan.rounds,
        "default_engine": plan.default,
        "nodes": plan.headline_nodes,
        "measurements": [_measurement(job, result, samples[job]) for job, result in results.items()],
        "ratios": measured,
        "brisa_vs_flood_by_nodes": brisa_vs_flood_by_nodes(plan, results),
        "traced_vs_untraced": traced_vs_untraced(plan, results),
        "targets": verdicts(measured),
    }


def _measurement(job: Job, result: Result, samples: list[Result]) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(job),
        **msgspec.to_builtins(result),
        "events_per_second": round(result.events_per_second),
        "events_per_cpu_second": round(result.events_per_cpu_second),
        "cpu_seconds_of_all": [round(sample.cpu_seconds, 3) for sample in samples],
    }


def view(report: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(
        Text(f"{title(report['machine'])} · SimPy {report['machine']['simpy']}", style="bold"),
        _measurements(report["measurements"]),
        verdict_table(f"at {report['nodes']:,} nodes", report["targets"]),
    )


def title(facts: dict[str, Any]) -> str:
    return f"{facts['processor']}, {facts['cores']} cores, load {facts['load_average']} · Python {facts['python']}"


def _measurements(rows: list[dict[str, Any]]) -> Table:
    table = new_table("measurement", "nodes", "system", "events", "seconds", "processor", "events/s of processor")
    for row in rows:
        what = row["stack"] if row["measure"] == "stream" else row["measure"]
        if row["bytes_per_node"] is not None:
            memory = f"{f.size(row['bytes_per_node'])} a node"
            table.add_row("memory, idle", f.count(row["nodes"]), row["system"], "", "", "", memory)
            continue
        table.add_row(
            what + (", traced" if row["traced"] else ""),
            f.count(row["nodes"]),
            row["system"],
            f.count(row["events"]),
            f"{row['seconds']:.2f} s",
            f"{row['cpu_seconds']:.2f} s",
            f.rate(row["events_per_cpu_second"]),
        )
    return table


def verdict_table(heading: str, targets: dict[str, dict[str, Any]]) -> Table:
    table = new_table(heading, "measured", "target", "")
    for target in targets.values():
        met = {None: f.DASH, True: "[green]met[/]", False: "[red]missed[/]"}[target["met"]]
        bound = f"{'≥' if target['at_least'] else '≤'} {target['target']:g}"
        table.add_row(target["meaning"], f.number(target["measured"]), bound, met)
    return table


def new_table(first: str, *others: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=(0, 1))
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="left" if heading == "system" else "right", no_wrap=True)
    return table
