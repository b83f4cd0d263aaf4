"""What time an event is given, and after how many rounds nothing can come before it (document 000, figure 5.5).

With a global clock, whatever is older than an event was broadcast before it, and has reached everybody when the event
has: it is stable after TTL rounds. With logical clocks a process that has not heard of the event yet may still give
an older time: that may take TTL rounds, and what it broadcasts TTL more.

Erratum obeyed: a process never gives the same time twice, nor one below what it has seen (E-E8). So order survives any
clock. What a clock that is wrong costs is agreement: events from the past come after their turn, and one from the
future puts an end to all turns before it. Nobody believes its own calendar if the others say something else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

from epicast.core.env import Env

ClockKind = Literal["logical", "global"]


class BallClock(ABC):
    """`highest` is the highest time that was given or seen."""

    __slots__ = ("env", "highest")

    stable_after: int  # how many times TTL rounds

    def __init__(self, env: Env) -> None:
        self.env, self.highest = env, 0

    @abstractmethod
    def take(self) -> int:
        """A time for a new event, above all before it."""

    @abstractmethod
    def plausible(self, timestamp: int) -> bool:
        """May a process have given this time, as far as we can tell? What nobody can have given would hold everybody's
        clock, and with it everybody's events, far in the future."""

    @abstractmethod
    def reading(self) -> int:
        """What time it is, as we would tell somebody who asks."""

    def see(self, timestamp: int) -> None:
        """An event has this time, or a lower one."""
        if timestamp > self.highest:
            self.highest = timestamp

    def hear(self, reading: int) -> None:
        """Somebody else's reading."""
        self.see(reading)


class LogicalClock(BallClock):
    __slots__ = ()

    stable_after = 2
    JUMP_MAX = 1 << 40  # events that a newcomer may have missed: a million a second for twelve days

    def take(self) -> int:
        self.highest += 1
        return self.highest

    def plausible(self, timestamp: int) -> bool:
        return timestamp <= self.highest + self.JUMP_MAX

    def reading(self) -> int:
        return self.highest


class GlobalClock(BallClock):
    """The calendar of this machine, unless it is far from what others have told us."""

    __slots__ = ("_told", "_told_at")

    stable_after = 1
    APART_MAX_US = 1_000_000  # our guess: clocks that somebody keeps in step are much closer

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._told: int | None = None  # the latest time that somebody told us
        self._told_at = 0  # when, by the clock that never jumps

    def take(self) -> int:
        self.highest = max(self.reading(), self.highest + 1)
        return self.highest

    def plausible(self, timestamp: int) -> bool:
        if self._told is None or timestamp <= self.highest:
            return True
        return timestamp <= max(self.reading(), self.highest) + 2 * self.APART_MAX_US

    def reading(self) -> int:
        calendar = self.env.calendar_us()
        if self._told is None:
            return calendar
        theirs = self._told + self.env.now_us() - self._told_at
        return min(max(calendar, theirs - self.APART_MAX_US), theirs + self.APART_MAX_US)

    def see(self, timestamp: int) -> None:
        if timestamp > self.highest:
            self.highest = timestamp
            self.hear(timestamp)

    def hear(self, reading: int) -> None:
        now = self.env.now_us()
        if self._told is None or reading > self._told + now - self._told_at:
            self._told, self._told_at = reading, now


def make_clock(kind: ClockKind, env: Env) -> BallClock:
    return LogicalClock(env) if kind == "logical" else GlobalClock(env)
