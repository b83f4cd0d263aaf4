"""What time an event is given, and after how many rounds nothing can come before it (document 000, figure 5.5).

With a global clock, whatever is older than an event was broadcast before it, and has reached everybody when the event
has: it is stable after TTL rounds. With logical clocks a process that has not heard of the event yet may still give
an older time: that may take TTL rounds, and what it broadcasts TTL more.

Erratum obeyed: a process never gives the same time twice, nor one below what it has seen (E-E8). So the global clock
is never behind one that runs ahead: with clocks in step it is just the time, and else order survives, only later.
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

    def see(self, timestamp: int) -> None:
        if timestamp > self.highest:
            self.highest = timestamp


class LogicalClock(BallClock):
    __slots__ = ()

    stable_after = 2
    JUMP_MAX = 1 << 40  # events that a newcomer may have missed: a million a second for twelve days

    def take(self) -> int:
        self.highest += 1
        return self.highest

    def plausible(self, timestamp: int) -> bool:
        return timestamp <= self.highest + self.JUMP_MAX


class GlobalClock(BallClock):
    __slots__ = ()

    stable_after = 1
    AHEAD_MAX_US = 60_000_000  # another's calendar may be so far ahead of ours

    def take(self) -> int:
        self.highest = max(self.env.calendar_us(), self.highest + 1)
        return self.highest

    def plausible(self, timestamp: int) -> bool:
        return timestamp <= max(self.env.calendar_us(), self.highest) + self.AHEAD_MAX_US


def make_clock(kind: ClockKind, env: Env) -> BallClock:
    return LogicalClock(env) if kind == "logical" else GlobalClock(env)
