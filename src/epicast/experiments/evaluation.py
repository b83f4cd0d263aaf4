"""What an experiment makes of its results: figures, tables, and checks against what was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from epicast.pipeline.report.data import CheckRow, FigureBlock, TableBlock, Verdict
from epicast.pipeline.results import Results

Edges = Sequence[tuple[int, int]]
"""From child to parent."""


@dataclass(frozen=True)
class Evaluation:
    checks: tuple[CheckRow, ...] = ()
    figures: tuple[FigureBlock, ...] = ()
    tables: tuple[TableBlock, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Material:
    """All that an evaluation may look at."""

    results: Results
    sample_tree: Callable[[int], Edges] = field(default=lambda point: ())
    """The tree of one run of a point at its end, for drawing."""


Evaluate = Callable[[Material], Evaluation]


def check(id: str, claim: str, published: str, measured: str, holds: bool | None, reason: str = "") -> CheckRow:  # noqa: A002
    """`holds` is None where nothing could be measured; then the reason says why."""
    verdict: Verdict = "not measured" if holds is None else "holds" if holds else "differs"
    return CheckRow(id=id, claim=claim, published=published, measured=measured, verdict=verdict, reason=reason)
