"""What is found out about one run: its tables are made and checked, its guarantees judged, its metrics measured.

The answer is one row, small whatever the size of the run, so that answers of many runs can travel and be gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epicast.core.errors import EpicastError
from epicast.pipeline import tables
from epicast.pipeline.guarantees import Verdict, judge
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.metrics import Measures, measure
from epicast.trace.files import one_line, temporary
from epicast.trace.run import RunFolder

FINDING = pa.struct({"what": pa.string(), "rows": pa.list_(pa.int64())})
VERDICT = pa.struct(
    {
        "guarantee": pa.string(),
        "promised": pa.bool_(),
        "judged": pa.bool_(),
        "checked": pa.int64(),
        "violations": pa.int64(),
        "reason": pa.string(),
        "findings": pa.list_(FINDING),
        "numbers": pa.map_(pa.string(), pa.int64()),
    }
)
SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "error": pa.string(),  # null, or why nothing could be found out
        "rows": pa.int64(),
        "verdicts": pa.list_(VERDICT),
        "metrics": pa.map_(pa.string(), pa.float64()),
        "histograms": pa.list_(pa.struct({"name": pa.string(), "value": pa.float64(), "count": pa.int64()})),
        "series": pa.list_(pa.struct({"name": pa.string(), "time_s": pa.float64(), "value": pa.float64()})),
    }
)


def analyse(
    kernel: Kernel,
    run: RunFolder,
    name: str,
    folder_of: Callable[[str], Path] | None = None,
    extra: Sequence[str] = (),
) -> pa.Table:
    """One row of `SCHEMA`. The tables are kept if there are folders for them."""
    facts = RunFacts.of(run.info, extra)
    tables.define(kernel, facts)
    if folder_of is not None:
        tables.write(kernel, facts, folder_of)
    verdicts = judge(kernel, facts)
    return row(name, run.info.rows, verdicts, measure(kernel, facts))


def row(name: str, rows: int, verdicts: list[Verdict], measures: Measures) -> pa.Table:
    return _table(
        {
            "run": name,
            "error": None,
            "rows": rows,
            "verdicts": [_plain(verdict) for verdict in verdicts],
            "metrics": list(measures.metrics.items()),
            "histograms": [{"name": n, "value": v, "count": c} for n, v, c in measures.histograms],
            "series": [{"name": n, "time_s": t, "value": v} for n, t, v in measures.series],
        }
    )


def failed(name: str, reason: str) -> pa.Table:
    nothing: dict[str, Any] = {"verdicts": [], "metrics": [], "histograms": [], "series": []}
    return _table({"run": name, "error": reason, "rows": 0, **nothing})


def _table(content: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([content], SCHEMA)


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "guarantee": verdict.guarantee,
        "promised": verdict.promised,
        "judged": verdict.judged,
        "checked": verdict.checked,
        "violations": verdict.violations,
        "reason": verdict.reason,
        "findings": [{"what": finding.what, "rows": list(finding.rows)} for finding in verdict.findings],
        "numbers": list(verdict.numbers.items()),
    }


# Kept, so that a sweep that goes on does not analyse again what it has


def save(table: pa.Table, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, temporary(file))
        temporary(file).replace(file)
    except OSError as error:
        raise EpicastError(f"cannot write {file}: {one_line(error)}") from None


def load(file: Path) -> pa.Table | None:
    """None if it is not there, or damaged."""
    try:
        return pq.read_table(file, partitioning=None).cast(SCHEMA) if file.exists() else None
    except (OSError, pa.ArrowException):
        return None
