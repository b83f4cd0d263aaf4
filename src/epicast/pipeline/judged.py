"""The guarantees over all runs that were judged: one line for each, whichever engine gathers the verdicts.

Of a sweep, Spark gathers them (`results.py`), since there may be many runs. Of the few runs that one process judges,
`Gathered` does: it is told the answers one after the other and keeps sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

EXAMPLES_MAX = 5


@dataclass(frozen=True)
class Judged:
    """One guarantee over all runs."""

    guarantee: str
    promised: bool
    runs_judged: int
    checked: int
    violations: int
    runs_broken: int
    note: str
    examples: tuple[str, ...]
    numbers: dict[str, int] = field(default_factory=dict)  # what is told apart besides, summed over all runs

    @property
    def broken(self) -> bool:
        return self.promised and self.violations > 0


def judged_of(row: Mapping[str, Any], examples: tuple[str, ...], numbers: dict[str, int] | None) -> Judged:
    """From the sums over all runs."""
    return Judged(
        guarantee=str(row["guarantee"]),
        promised=bool(row["promised"]),
        runs_judged=int(row["runs_judged"]),
        checked=int(row["checked"]),
        violations=int(row["violations"]),
        runs_broken=int(row["runs_broken"]),
        note=_note(row, numbers or {}),
        examples=examples,
        numbers=numbers or {},
    )


def _note(row: Mapping[str, Any], numbers: Mapping[str, int]) -> str:
    """What one run's checker had to say; of many runs, what was told apart and why some could not be judged."""
    if row["runs"] == 1:
        return str(row["reason"])
    left = int(row["runs"]) - int(row["runs_judged"])
    told = ", ".join(f"{number:,} {name}" for name, number in numbers.items())
    unjudged = f"not judged in {left:,} of {row['runs']:,} runs: {row['unjudged']}" if left else ""
    return "; ".join(part for part in (told, unjudged) if part)


def example(run: str, what: str, rows: Sequence[int]) -> str:
    return f"run {run}: {what} (rows {', '.join(map(str, rows))})"


class Gathered:
    """The same sums as Spark's, from answers that come one by one: a row of `analysis.SCHEMA` each."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, bool], dict[str, Any]] = {}
        self._numbers: dict[tuple[int, bool], dict[str, int]] = {}
        self._examples: dict[tuple[int, bool], list[str]] = {}

    def add(self, answer: pa.Table) -> None:
        for row in answer.select(["run", "verdicts"]).to_pylist():
            for at, verdict in enumerate(row["verdicts"]):
                self._add(row["run"], at, verdict)

    def judged(self) -> list[Judged]:
        """In the order in which they are judged; two where only some runs promise it."""
        keys = sorted(self._sums, key=lambda key: (key[0], not key[1]))
        return [
            judged_of(self._sums[key], tuple(self._examples[key]), dict(sorted(self._numbers[key].items())))
            for key in keys
        ]

    def _add(self, run: str, at: int, verdict: Mapping[str, Any]) -> None:
        key = at, verdict["promised"]
        sums = self._sums.setdefault(
            key,
            {"guarantee": verdict["guarantee"], "promised": verdict["promised"], "reason": "", "unjudged": ""}
            | dict.fromkeys(("runs", "runs_judged", "checked", "violations", "runs_broken"), 0),
        )
        sums["runs"] += 1
        sums["reason"] = max(sums["reason"], verdict["reason"])
        numbers, examples = self._numbers.setdefault(key, {}), self._examples.setdefault(key, [])
        if not verdict["judged"]:
            sums["unjudged"] = max(sums["unjudged"], verdict["reason"])
            return
        sums["runs_judged"] += 1
        sums["checked"] += verdict["checked"]
        sums["violations"] += verdict["violations"]
        sums["runs_broken"] += verdict["violations"] > 0
        for name, number in verdict["numbers"]:
            numbers[name] = numbers.get(name, 0) + number
        for finding in verdict["findings"][: EXAMPLES_MAX - len(examples)]:
            examples.append(example(run, finding["what"], finding["rows"]))
