"""Small answers from a kernel as Python values, and the names of the processes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Finding
from epicast.pipeline.kernel import Kernel

Row = dict[str, Any]


def number_of(kernel: Kernel, sql: str) -> dict[str, int]:
    """The one row of an aggregate; what has no value counts as 0."""
    (row,) = kernel.query(sql).to_pylist()
    return {name: int(value or 0) for name, value in row.items()}


def rows_of(kernel: Kernel, sql: str) -> list[Row]:
    found: list[Row] = kernel.query(sql).to_pylist()
    return found


def findings(
    kernel: Kernel, sql: str, people: Sequence[str], say: Callable[[Row], str], proof: Sequence[str]
) -> tuple[Finding, ...]:
    """One for each of the first rows of an ordered answer. `people` are the columns that hold processes: they are
    replaced by names. `proof` are the columns that hold rows of the trace, where there are any."""
    found = rows_of(kernel, f"{sql} LIMIT {FINDINGS_MAX}")
    names = names_of(kernel, (row[column] for row in found for column in people))
    rows = [tuple(sorted({row[column] for column in proof if row[column] is not None})) for row in found]
    named = [row | {column: names.get(row[column], "") for column in people} for row in found]
    return tuple(Finding(say(row), proved) for row, proved in zip(named, rows, strict=True))


def names_of(kernel: Kernel, processes: Iterable[int | None]) -> dict[int, str]:
    wanted = sorted({process for process in processes if process is not None})
    if not wanted:
        return {}
    known = rows_of(kernel, f"SELECT node, name FROM nodes WHERE node IN ({listed(wanted)})")
    return {process: str(process) for process in wanted} | {row["node"]: row["name"] for row in known}


def message(row: Row, source: str = "source", seq: str = "seq") -> str:
    return f"message {row[seq]} of process {row[source]}"


def listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers)


def inline(rows: Iterable[Sequence[int]], *columns: str) -> str:
    """A table of a few numbers, for a FROM clause."""
    values = ", ".join(f"({', '.join(f'CAST({number} AS BIGINT)' for number in row)})" for row in rows)
    return f"(VALUES {values}) AS given({', '.join(columns)})"
