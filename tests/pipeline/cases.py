"""A bad history with what the checkers must say: how many violations of what, and the rows of the trace that prove the
first ones. Whatever is not named must not be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.pipeline.histories import History


@dataclass
class Case:
    history: History
    wrong: dict[str, int]  # violations by guarantee
    proof: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)  # rows of the first findings
    says: dict[str, str] = field(default_factory=dict)  # what the first finding says
    inversions: int = 0  # pairs of messages in opposite orders
    holes: int = 0  # that agreement counts


BAD: dict[str, Callable[[], Case]] = {}


def bad(make: Callable[[], Case]) -> Callable[[], Case]:
    BAD[make.__name__] = make
    return make
