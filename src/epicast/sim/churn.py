"""Carries out a churn script: when which processes join, leave and crash.

Percentages count the population at that moment, so the driver decides as it goes: it tells when it wants to be asked,
and answers for the population that it is then shown. Within an interval of const churn, failures and joins fall at
random instants. A share of few processes is a fraction of one: what is owed is carried over, exactly, so that the rate
is met in the long run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from epicast.sim.churn_script import (
    Change,
    ChurnScript,
    ConstChurn,
    Kind,
    Replacement,
    Session,
    Statement,
    Trace,
    TraceRow,
    parse_churn,
    read_trace,
)

__all__ = ["Action", "ChurnDriver", "ChurnScript", "parse_churn"]


class Action(NamedTuple):
    """What the world is to do. For a join `node` is None, or the name by which a trace will call the newcomer."""

    kind: Kind
    node: int | None = None


class ChurnDriver:
    """Asked at `next_us()`, which may be the same instant again: `pop` tells what to do with the population as it is.

    The world calls `joined` for every process that comes up, the first ones too, before it asks again. Const churn
    without a window and the ends of sessions fall from `start_us` on and before `end_us`. Protected processes never go.
    """

    def __init__(
        self, script: ChurnScript, rng: Random, start_us: int, end_us: int, protected: Container[int] = ()
    ) -> None:
        self.rng, self.protected = rng, protected
        self.start_us, self.stop_us = start_us, script.stop_us
        self.end_us = min(end_us, self.stop_us)
        self.ratio = Fraction(1)
        self._joins_owed = Fraction(0)
        self._session: Session | None = None
        self._named: dict[int, int] = {}  # the trace's name of a process -> its id here
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._queued = 0
        # At one instant a new ratio holds for all that happens, wherever its line stands.
        for statement in sorted(script.statements, key=lambda statement: not isinstance(statement, Replacement)):
            self._begin(statement)

    def next_us(self) -> int | None:
        return self._queue[0][0] if self._queue else None

    def pop(self, population: Sequence[int]) -> list[Action]:
        """What happens at `next_us()`."""
        now_us = self._queue[0][0]
        turn = _Turn(now_us, population, self.protected, self.rng)
        while self._queue and self._queue[0][0] == now_us and not turn.over:
            _, _, handler, args = heappop(self._queue)
            handler(turn, *args)
        return turn.actions

    def joined(self, node: int, now_us: int, name: int | None = None) -> None:
        """A process came up; `name` is the node of the join action that asked for it, if it had one."""
        if name is not None:
            self._named[name] = node
        if self._session is not None and node not in self.protected:
            leaves_us = max(now_us, self.start_us) + self._session.draw_us(self.rng)
            if leaves_us < self.end_us:
                self._at(leaves_us, self._on_session_end, node)

    def _begin(self, statement: Statement) -> None:
        match statement:
            case Change():
                self._at(statement.from_us, self._on_change, statement, 0, 0)
            case Replacement():
                self._at(statement.at_us, self._on_ratio, statement.ratio)
            case ConstChurn(from_us=from_us, to_us=to_us):
                begin_us = self.start_us if from_us is None else from_us
                until_us = self.end_us if to_us is None else min(to_us, self.stop_us)
                if begin_us < until_us:
                    self._at(begin_us, self._on_step, statement, until_us, Fraction(0))
            case Session():
                self._session = statement
            case Trace():
                self._next_row(row for row in read_trace(statement.file) if row[0] < self.stop_us)

    def _at(self, time_us: int, handler: Callable[..., None], *args: Any) -> None:
        self._queued += 1
        heappush(self._queue, (time_us, self._queued, handler, args))

    def _on_ratio(self, turn: _Turn, ratio: Fraction) -> None:
        self.ratio = ratio

    def _on_change(self, turn: _Turn, change: Change, done: int, total: int) -> None:
        if done == 0:
            total = int(change.amount.of(turn.size) + Fraction(1, 2))
        span_us = change.to_us - change.from_us
        count = min(1, total) if span_us else total
        turn.act(change.kind, count)
        if done + count < total:
            self._at(change.from_us + span_us * (done + count) // total, self._on_change, change, done + count, total)

    def _on_step(self, turn: _Turn, churn: ConstChurn, until_us: int, owed: Fraction) -> None:
        """Plan one interval. The last one may be shorter, and owes as much less."""
        length_us = min(churn.each_us, until_us - turn.now_us)
        owed += churn.amount.of(turn.size) * Fraction(length_us, churn.each_us)
        failures = min(int(owed), turn.removable()) if owed >= 1 else 0
        for kind, count in ((churn.kind, failures), ("join", self._joins_for(failures))):
            for _ in range(count):
                self._at(turn.now_us + self.rng.randrange(length_us), self._on_one, kind)
        if turn.now_us + length_us < until_us:
            self._at(turn.now_us + length_us, self._on_step, churn, until_us, owed - int(owed))

    def _on_one(self, turn: _Turn, kind: Kind) -> None:
        turn.act(kind, 1)

    def _on_session_end(self, turn: _Turn, node: int) -> None:
        assert self._session is not None
        if turn.remove(self._session.kind, node):
            turn.act("join", self._joins_for(1))

    def _next_row(self, rows: Iterator[TraceRow]) -> None:
        row = next(rows, None)
        if row is not None:
            self._at(row[0], self._on_row, row, rows)

    def _on_row(self, turn: _Turn, row: TraceRow, rows: Iterator[TraceRow]) -> None:
        _, kind, name = row
        if kind == "join":
            turn.actions.append(Action("join", name))
            turn.over = True  # a row of the same instant may name the newcomer
        else:
            turn.remove(kind, self._named.get(name, name))
        self._next_row(rows)

    def _joins_for(self, failures: int) -> int:
        self._joins_owed += self.ratio * failures
        joins = int(self._joins_owed)
        self._joins_owed -= joins
        return joins


class _Turn:
    """One instant: whom there is to choose from, and what was decided so far."""

    def __init__(self, now_us: int, population: Sequence[int], protected: Container[int], rng: Random) -> None:
        self.now_us, self.population, self.protected, self.rng = now_us, population, protected, rng
        self.actions: list[Action] = []
        self.removed: set[int] = set()
        self.over = False

    @property
    def size(self) -> int:
        return len(self.population) + len(self.actions) - 2 * len(self.removed)

    def removable(self) -> int:
        return sum(self._may_go(node) for node in self.population)

    def act(self, kind: Kind, count: int) -> None:
        if kind == "join":
            self.actions += [Action("join")] * count
        else:
            self._remove_any(kind, count)

    def remove(self, kind: Kind, node: int) -> bool:
        """False if there is no such process any more, or it is protected."""
        if node not in self.population or not self._may_go(node):
            return False
        self._remove(kind, node)
        return True

    def _remove_any(self, kind: Kind, count: int) -> None:
        """Uniformly. Guessing is quick while nearly everyone may go; whom it did not find comes from a full list."""
        count = min(count, len(self.population))
        for _ in range(8 * count):
            node = self.rng.choice(self.population)
            if self._may_go(node):
                self._remove(kind, node)
                count -= 1
            if count == 0:
                return
        left = [node for node in self.population if self._may_go(node)]
        for node in self.rng.sample(left, min(count, len(left))):
            self._remove(kind, node)

    def _remove(self, kind: Kind, node: int) -> None:
        self.removed.add(node)
        self.actions.append(Action(kind, node))

    def _may_go(self, node: int) -> bool:
        return node not in self.protected and node not in self.removed
