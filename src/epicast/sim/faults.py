"""Faults as rules: each looks at who sends to whom and gives a verdict; the first verdict wins.

A rule has no opinion (None), lets a message pass (0), delays it (microseconds) or drops it (DROP). Rules are added and
removed at any time; the message path consults them only while there are any.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Protocol

DROP = -1
PASS = 0


class Rule(Protocol):
    reason: str

    def verdict(self, src: int, dst: int) -> int | None: ...


class Partition:
    """Nothing crosses between `side` and the rest; one-way: nothing leaves `side`."""

    reason = "partition"

    def __init__(self, side: Container[int], *, one_way: bool = False) -> None:
        self.side, self.one_way = side, one_way

    def verdict(self, src: int, dst: int) -> int | None:
        leaves, enters = src in self.side, dst in self.side
        if leaves == enters or (self.one_way and enters):
            return None
        return DROP


class Isolate:
    """Each of these processes is cut off from everyone."""

    reason = "isolate"

    def __init__(self, nodes: Container[int]) -> None:
        self.nodes = nodes

    def verdict(self, src: int, dst: int) -> int | None:
        return DROP if src in self.nodes or dst in self.nodes else None


class Clog:
    """Whatever goes to or comes from these processes is held up."""

    reason = "clog"

    def __init__(self, nodes: Container[int], delay_us: int) -> None:
        self.nodes, self.delay_us = nodes, delay_us

    def verdict(self, src: int, dst: int) -> int | None:
        return self.delay_us if src in self.nodes or dst in self.nodes else None


class CutLinks:
    """Certain directed pairs cannot talk."""

    reason = "cut"

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.pairs = frozenset(pairs)

    def verdict(self, src: int, dst: int) -> int | None:
        return DROP if (src, dst) in self.pairs else None


class Spare:
    """Put first, it protects traffic between these processes from all later rules."""

    reason = "spare"

    def __init__(self, nodes: Container[int]) -> None:
        self.nodes = nodes

    def verdict(self, src: int, dst: int) -> int | None:
        return PASS if src in self.nodes and dst in self.nodes else None


class Rules:
    """The rules in force, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def __bool__(self) -> bool:
        return bool(self._rules)

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)

    def remove(self, rule: Rule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        self._rules.clear()

    def verdict(self, src: int, dst: int) -> tuple[int, str]:
        for rule in self._rules:
            verdict = rule.verdict(src, dst)
            if verdict is not None:
                return verdict, rule.reason
        return PASS, ""
