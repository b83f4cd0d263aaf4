"""What a check says: how much it looked at, what it found, and the rows of the trace that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FINDINGS_MAX = 20
"""Violations that are listed one by one; all of them are counted."""


@dataclass(frozen=True)
class Guarantee:
    name: str
    statement: str


GUARANTEES = (
    Guarantee(
        "integrity",
        "a process delivers a message at most once, and only what was published: on the topic of its publication and"
        " not before it",
    ),
    Guarantee("validity", "a publisher that is up to the end delivers its own messages"),
    Guarantee(
        "agreement",
        "what one process that stays delivers, every process that stays delivers: those that were up, and subscribed"
        " where there are subscriptions, from the publication to the end",
    ),
    Guarantee("fifo", "a process delivers the messages of one publisher on one topic in the order of their numbers"),
    Guarantee("causal", "a process that delivers both a message and its answer delivers the answer later"),
    Guarantee(
        "total",
        "all processes deliver the messages of a topic in one and the same order, each leaving out what it lacks",
    ),
    Guarantee("no-parasites", "where there are subscriptions, only current subscribers of its topic deliver a message"),
    Guarantee(
        "tree",
        "at rest, in every flow, each process has one parent, which is up, and parents lead to the source without a"
        " cycle",
    ),
    Guarantee(
        "accounting",
        "every message sent was received, dropped for a reason or still under way, and none came of nothing",
    ),
)
"""In the order in which they are judged, which is that of `core.promises`."""


@dataclass(frozen=True)
class Finding:
    """One violation."""

    what: str  # one line that names the processes and messages
    rows: tuple[int, ...]  # numbers of the trace rows that prove it


@dataclass(frozen=True)
class Verdict:
    guarantee: str
    promised: bool  # by the stack of the run
    judged: bool
    checked: int  # how many instances were looked at
    violations: int
    reason: str  # why it was not judged, or what to know about the count
    findings: tuple[Finding, ...]  # the first ones
    numbers: Mapping[str, int] = field(default_factory=dict)  # what is told apart besides, by name

    @property
    def broken(self) -> bool:
        return self.promised and self.judged and self.violations > 0


@dataclass(frozen=True)
class Outcome:
    """A verdict before it is known whether anybody promised anything."""

    checked: int
    violations: int = 0
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    judged: bool = True
    numbers: Mapping[str, int] = field(default_factory=dict)


def not_judged(reason: str) -> Outcome:
    return Outcome(0, reason=reason, judged=False)


def counted(number: int, what: str, many: str = "") -> str:
    """1 hole, 2 holes, 1,000 holes."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def notes(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
