"""What a report says, as plain values. Who fills them decides; `render.py` only lays them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Verdict = Literal["holds", "differs", "not measured"]
EXAMPLES_MAX = 5


@dataclass(frozen=True)
class CheckRow:
    """A claim of a document, and whether it was found again."""

    id: str
    claim: str  # one sentence
    published: str
    measured: str
    verdict: Verdict
    reason: str = ""  # why it differs, or was not measured: a sentence

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise ValueError(f"check {self.id}: {self.verdict!r} is none of {', '.join(get_args(Verdict))}")
        if self.verdict != "holds" and not self.reason.strip():
            raise ValueError(f"check {self.id} {self.verdict}, and its reason is not given")


@dataclass(frozen=True)
class FigureBlock:
    id: str
    title: str
    caption: str
    svg: str  # made by `figures.inline_svg.svg`; the only text of a report that is taken as markup


@dataclass(frozen=True)
class TableBlock:
    id: str
    title: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError(f"table {self.id}: every row needs {len(self.header)} cells")


@dataclass(frozen=True)
class GuaranteeRow:
    """A guarantee over all runs. One that the stack does not promise is watched all the same."""

    name: str
    statement: str
    promised: bool
    runs_judged: int
    checked: int
    violations: int
    runs_broken: int
    note: str = ""
    examples: tuple[str, ...] = ()  # findings that prove it

    def __post_init__(self) -> None:
        if len(self.examples) > EXAMPLES_MAX:
            raise ValueError(f"guarantee {self.name}: at most {EXAMPLES_MAX} examples")

    @property
    def broken(self) -> bool:
        """A promise that did not hold."""
        return self.promised and self.violations > 0


@dataclass(frozen=True)
class MissingRun:
    run: str
    parameters: str
    reason: str


@dataclass(frozen=True)
class ReportData:
    experiment: str  # its name
    title: str
    question: str
    answers: str  # the published figure or table that it answers
    setup: tuple[tuple[str, str], ...] = ()
    checks: tuple[CheckRow, ...] = ()
    figures: tuple[FigureBlock, ...] = ()
    tables: tuple[TableBlock, ...] = ()
    guarantees: tuple[GuaranteeRow, ...] = ()
    runs_done: int = 0
    runs_failed: tuple[MissingRun, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    command: str = ""
    made: str = ""  # a date, as it is to be printed
    notes: tuple[str, ...] = ()
