"""What time an event is given, and after how many rounds nothing can come before it (document 000, figure 5.5).

With a global clock, whatever is older than an event was broadcast before it, and has reached everybody when the event
has: it is stable after TTL rounds. With logical clocks a process that has not heard of the event yet may still give
an older time: that may take TTL rounds, and what it broadcasts TTL more.

Erratum obeyed: a process never gives the same time twice, nor one below what it has seen (E-E8). So order survives any
clock. What a clock that is wrong costs is agreement: events from the past come after their turn, and one from the
future puts an end to all turns before it. So nobody believes its own calendar if most of the others say something else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from statistics import median_high, median_low
from typing import Literal

from epicast.core.env import Env
from epicast.core.ids import NodeId

ClockKind = Literal["logical", "global"]


class BallClock(ABC):
    """`highest` is the highest time that was given or seen."""

    __slots__ = ("env", "highest")

    stable_after: int  # how many times TTL rounds
    told_by_events: bool  # is who has seen an event as good as told what time it is?

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

    @abstractmethod
    def hear(self, teller: NodeId, reading: int) -> bool:
        """Somebody else's reading. Do we know now what time it is?"""


class LogicalClock(BallClock):
    """Counts events. Anybody can say that there were more, so nobody's word moves the clock by much.

    A process that gives times has `room` for others to move its clock forward, which grows back with real time. One
    that has given none yet knows nothing itself: it takes what most others say, also if it heard of more at first.
    """

    __slots__ = ("_gave", "_readings", "_room", "_room_us")

    stable_after = 2
    told_by_events = True
    ROOM = 1 << 26  # events that a process may have missed while it stood still: a thousand a second for 18 hours
    ROOM_PER_S = 1 << 20  # a million events a second: at this pace the numbers last for 100,000 years
    FIRST_MAX = 1 << 60  # leaves three times as many
    TELLERS_MAX = 15  # the last ones count

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._gave = False
        self._readings: dict[NodeId, int] = {}
        self._room, self._room_us = self.ROOM, env.now_us()

    def take(self) -> int:
        self._gave = True
        self.highest += 1
        return self.highest

    def plausible(self, timestamp: int) -> bool:
        if timestamp <= self.highest:
            return True
        if self._gave:
            return timestamp - self.highest <= self._room_now()
        return timestamp <= (median_high(self._readings.values()) + self.ROOM if self._readings else self.FIRST_MAX)

    def see(self, timestamp: int) -> None:
        if self._gave and timestamp > self.highest:
            self._room = max(0, self._room_now() - (timestamp - self.highest))
        super().see(timestamp)

    def reading(self) -> int:
        return self.highest

    def hear(self, teller: NodeId, reading: int) -> bool:
        if not self._gave:
            self._readings.pop(teller, None)
            self._readings[teller] = min(reading, self.FIRST_MAX)
            if len(self._readings) > self.TELLERS_MAX:
                del self._readings[next(iter(self._readings))]
            most = median_high(self._readings.values())
            if self.highest > most + self.ROOM:
                self.highest = most
        if not self.plausible(reading):
            return False
        self.see(reading)
        return True

    def _room_now(self) -> int:
        now = self.env.now_us()
        self._room = min(self.ROOM, self._room + (now - self._room_us) * self.ROOM_PER_S // 1_000_000)
        self._room_us = now
        return self._room


class GlobalClock(BallClock):
    """The calendar of this machine, unless it is far from what most others have told us.

    A newcomer whose calendar is wrong may know one other process: before it gives any time it takes that one's. Later
    its own calendar counts as one opinion among many."""

    __slots__ = ("_ahead", "_gave", "_taken_over")

    stable_after = 1
    told_by_events = False  # the last one may be an hour old
    APART_MAX_US = 1_000_000  # our guess: clocks that somebody keeps in step are closer; readings take a while
    AHEAD_MAX_US = 2_000_000  # our guess: no event is so far in the future
    TELLERS_MAX = 15  # the last ones count

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        # By how much clocks are ahead of the one here that never jumps.
        self._ahead: dict[NodeId, int] = {}  # others, as they last told
        self._taken_over: int | None = None  # ours, where the calendar was wrong from the start
        self._gave = False

    def take(self) -> int:
        self._gave = True
        self.highest = max(self.reading(), self.highest + 1)
        return self.highest

    def plausible(self, timestamp: int) -> bool:
        if not self._ahead or timestamp <= self.highest:
            return True
        return timestamp <= max(self.reading(), self.highest) + self.AHEAD_MAX_US

    def reading(self) -> int:
        now = self.env.now_us()
        mine = self._mine(now)
        most = now + median_low([mine - now, *self._ahead.values()])
        return mine if self._is_near(mine, most) else most

    def _mine(self, now: int) -> int:
        calendar = self.env.calendar_us()
        if self._taken_over is None or self._is_near(calendar, now + self._taken_over):
            return calendar
        return now + self._taken_over

    def _is_near(self, one: int, other: int) -> bool:
        return abs(one - other) <= self.APART_MAX_US

    def hear(self, teller: NodeId, reading: int) -> bool:
        now = self.env.now_us()
        if not self._ahead and not self._gave:
            self._taken_over = reading - now
        self._ahead.pop(teller, None)
        self._ahead[teller] = reading - now
        if len(self._ahead) > self.TELLERS_MAX:
            del self._ahead[next(iter(self._ahead))]
        return True


def make_clock(kind: ClockKind, env: Env) -> BallClock:
    return LogicalClock(env) if kind == "logical" else GlobalClock(env)
