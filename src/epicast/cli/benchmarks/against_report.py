"""The comparison of two versions, for programs and for people."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from epicast.cli import formats as f
from epicast.cli.benchmarks.against import NEW, OLD, Cell, Pair, Versions, judged, ratios, targets
from epicast.cli.benchmarks.report import machine, new_table, title, verdict_table
from epicast.cli.benchmarks.verdict import verdicts

if TYPE_CHECKING:
    from rich.console import RenderableType


def as_dict(cells: Sequence[Cell], versions: Versions, rounds: int, found: Sequence[Sequence[Pair]]) -> dict[str, Any]:
    measured = judged(cells, found)
    return {
        "machine": machine(),
        "versions": {name: msgspec.to_builtins(each) for name, each in versions.items()},
        "rounds": rounds,
        "cells": [_cell(cell, pairs) for cell, pairs in zip(cells, found, strict=True)],
        "ratios": measured,
        "targets": verdicts(measured, targets(measured)),
    }


def _cell(cell: Cell, pairs: Sequence[Pair]) -> dict[str, Any]:
    of_rounds = ratios(pairs)
    return {
        "name": cell.name,
        "kind": cell.kind,
        **{f"cpu_us_{version}": _middle(pairs, version) for version in (NEW, OLD)},
        "ratio": round(median(of_rounds), 4) if of_rounds else None,
        "ratios_of_rounds": [round(each, 4) for each in of_rounds],
        "errors": [pair[version].error for pair in pairs for version in (NEW, OLD) if pair[version].error],
    }


def _middle(pairs: Sequence[Pair], version: str) -> float | None:
    times = [time for pair in pairs if (time := pair[version].cpu_us) is not None]
    return round(median(times), 3) if times else None


def view(report: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(
        Text(title(report["machine"]), style="bold"),
        *(Text(f"{name}: {_version(each)}") for name, each in report["versions"].items()),
        *(Text(f"attention: {words}") for words in _unlike(report["versions"])),
        _cells(report["cells"]),
        verdict_table(f"medians of {report['rounds']} alternating rounds", report["targets"]),
        *(Text(f"{cell['name']}: {error}") for cell in report["cells"] for error in cell["errors"]),
    )


def _version(facts: dict[str, Any]) -> str:
    pure = [part for part, compiled in facts["compiled"].items() if not compiled]
    parts = f", pure {' and '.join(pure)}" if pure else ""
    return f"epicast {facts['version']}{parts}, Python {facts['interpreter']}, {facts['package']}"


def _unlike(versions: dict[str, dict[str, Any]]) -> list[str]:
    """Other differences between the two than their version."""
    new, old = versions[NEW], versions[OLD]
    found = ["they run on different Pythons"] if new["interpreter"] != old["interpreter"] else []
    return [*found, "both are the same package"] if new["package"] == old["package"] else found


def _cells(cells: list[dict[str, Any]]) -> RenderableType:
    table = new_table("processor time for a delivery", "new", "old", "ratio", "least", "most")
    for cell in cells:
        rounds = cell["ratios_of_rounds"]
        table.add_row(
            cell["name"],
            *(_us(cell[f"cpu_us_{version}"]) for version in (NEW, OLD)),
            f.number(cell["ratio"], 3),
            *(f.number(found(rounds) if rounds else None, 3) for found in (min, max)),
        )
    return table


def _us(value: float | None) -> str:
    return f.DASH if value is None else f"{value:,.2f} us"
