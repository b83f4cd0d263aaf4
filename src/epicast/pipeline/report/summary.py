"""The one line that sums a report up, and its tone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from epicast.pipeline.report.data import CheckRow, GuaranteeRow, ReportData

Tone = Literal["good", "mixed", "bad"]


class Summary(NamedTuple):
    tone: Tone
    text: str


def summary(data: ReportData) -> Summary:
    """Like "7 of 8 checks hold; no promise was broken in 24 runs"."""
    parts = [_of_checks(data.checks), _of_promises(data.guarantees), _of_runs(data.runs_done, len(data.runs_failed))]
    text = "; ".join(part for part in parts if part) or "nothing was checked"
    return Summary(_tone(data), text[0].upper() + text[1:] + ".")


def _tone(data: ReportData) -> Tone:
    if any(row.broken for row in data.guarantees):
        return "bad"
    clean = data.checks and all(check.verdict == "holds" for check in data.checks) and not data.runs_failed
    return "good" if clean else "mixed"


def _of_checks(checks: Sequence[CheckRow]) -> str:
    if not checks:
        return ""
    holding = sum(check.verdict == "holds" for check in checks)
    missing = sum(check.verdict == "not measured" for check in checks)
    if len(checks) == 1:
        return "the only check " + {"holds": "holds", "differs": "differs"}.get(checks[0].verdict, "was not measured")
    text = f"{holding} of {len(checks)} checks {'holds' if holding == 1 else 'hold'}"
    if missing:
        text += f", {missing} {'was' if missing == 1 else 'were'} not measured"
    return text


def _of_promises(guarantees: Sequence[GuaranteeRow]) -> str:
    judged = [row for row in guarantees if row.promised and row.runs_judged]
    if not judged:
        return "no promise was judged" if guarantees else ""
    broken = [row for row in judged if row.broken]
    if not broken:
        return f"no promise was broken in {counted(max(row.runs_judged for row in judged), 'run')}"
    where = ", ".join(f"{row.name} in {row.runs_broken:,} of {counted(row.runs_judged, 'run')}" for row in broken)
    return f"{counted(len(broken), 'promise')} {'was' if len(broken) == 1 else 'were'} broken: {where}"


def _of_runs(done: int, failed: int) -> str:
    return f"{failed:,} of {counted(done + failed, 'run')} failed" if failed else ""


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
