"""What an experiment came to, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epicast.cli import formats as f
from epicast.cli.output import unbroken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from epicast.experiments.conduct import Conducted
    from epicast.pipeline.judged import Judged

COLOURS = {"holds": "green", "differs": "yellow", "not measured": "dim"}


def view(done: Conducted) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from epicast.cli.fitting import FittingTable

    runs = f"{f.count(done.swept.runs)} runs ({f.count(done.swept.played)} played now), {f.count(done.missing)} missing"
    parts: list[RenderableType] = [Text(f"{done.experiment.title} · {runs}", style="bold")]
    parts += [FittingTable(block.title, block.header, block.rows) for block in done.evaluation.tables]
    if done.evaluation.checks:
        parts.append(_checks(done))
    parts.append(guarantees(done.results.judged))
    parts += [Text(f"missing: {each.point}, seed {each.seed}: {each.reason}") for each in done.swept.failures[:5]]
    parts += [Text(f"missing: {run}: {reason}") for run, reason in done.results.unanalysed[:5]]
    parts.append(unbroken(f"Report: {done.report}", "bold"))
    return Group(*parts)


def _checks(done: Conducted) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for heading in ("check", "published", "measured", ""):
        table.add_column(heading)
    for check in done.evaluation.checks:
        verdict = Text(check.verdict, style=COLOURS[check.verdict])
        table.add_row(Text(check.claim), Text(check.published), Text(check.measured), verdict)
    return table


def guarantees(judged: Sequence[Judged]) -> RenderableType:
    """A verdict for each, and what proves a violation."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("guarantee", style="cyan")
    table.add_column("verdict")
    for heading in ("checked", "violations"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for each in judged:
        table.add_row(each.guarantee, _verdict(each), f.count(each.checked), f.count(each.violations), Text(each.note))
    proofs = [Text(f"  {example}", style="yellow") for each in judged if each.broken for example in each.examples]
    return Group(table, *proofs)


def _verdict(judged: Judged) -> RenderableType:
    from rich.text import Text

    if not judged.runs_judged:
        return Text("not judged", style="dim")
    if not judged.violations:
        return Text("kept" if judged.promised else "kept, not promised", style="green")
    if judged.promised:
        return Text(f"broken in {f.count(judged.runs_broken)} runs", style="bold red")
    return Text("not promised", style="dim")
