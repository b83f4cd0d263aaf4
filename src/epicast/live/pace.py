"""How a peer takes what is sent to it, looked at now and then.

Its speed is what it took within the last second; its *lag* is how long it would need at that speed for what waits. Time
in which we were away ourselves does not count: between two looks there is half a second at most.
"""

from __future__ import annotations

import time
from collections import deque
from math import inf

LOOK_EVERY_US = 250_000
_LATE_US = 25_000
_LOOKS = 4  # over which speed is measured
_STEP_MAX_US = 500_000
_FADE = 0.95
"""At each look, of what counts as lately: half of it is from the last three seconds."""
_STALLED_LAG_US = 600_000_000


class Pace:
    __slots__ = (
        "_fed",
        "_heard",
        "_last_us",
        "_looks",
        "_step_us",
        "_time_us",
        "fed",
        "feeds",
        "has_kept_up",
        "lag_us",
        "slow_for_us",
        "stalled_for_us",
    )

    def __init__(self) -> None:
        self.lag_us = 0.0
        self.stalled_for_us = 0  # it takes nothing, or next to nothing
        self.slow_for_us = 0  # others keep up, and it does not
        self.has_kept_up = False  # it once had taken much, and nearly all there was
        self.fed = 0.0  # bytes of events for it, lately
        self.feeds = 0.0  # bytes from it, lately
        self._last_us = -1
        self._step_us = 0
        self._time_us = 0  # without the time in which we were away
        self._looks: deque[tuple[int, int]] = deque([(0, 0)], _LOOKS + 1)  # when, and all that it had taken by then
        self._heard = self._fed = 0

    def look(self, now_us: int, taken: int, waiting: int, fed: int, heard: int) -> None:
        """All bytes that it has taken, that wait for it, of events that were for it, and that came from it."""
        self._step_us = min(now_us - self._last_us, _STEP_MAX_US) if self._last_us >= 0 else 0
        self._last_us = now_us
        self._time_us += self._step_us
        self._looks.append((self._time_us, taken))
        self.fed = self.fed * _FADE + fed - self._fed
        self.feeds = self.feeds * _FADE + heard - self._heard
        self._fed, self._heard = fed, heard
        self.lag_us = self._lag_us(waiting)
        self.stalled_for_us = self.stalled_for_us + self._step_us if self.lag_us > _STALLED_LAG_US else 0

    def found(self, *, slow: bool) -> None:
        self.slow_for_us = self.slow_for_us + self._step_us if slow else 0

    def _lag_us(self, waiting: int) -> float:
        if not waiting:
            return 0.0
        (since_us, before), (now_us, taken) = self._looks[0], self._looks[-1]
        if now_us == since_us:
            return 0.0  # not known yet
        return waiting * (now_us - since_us) / (taken - before) if taken > before else inf


class Ease:
    """Have we little to do ourselves? Then a look comes when it is due, and most of the time in between we sleep."""

    __slots__ = ("_last_us", "_worked_ns")

    def __init__(self) -> None:
        self._last_us = -1
        self._worked_ns = 0

    def look(self, now_us: int) -> bool:
        worked_ns = time.process_time_ns()
        passed_us, busy_us = now_us - self._last_us, (worked_ns - self._worked_ns) / 1000
        self._last_us, self._worked_ns = now_us, worked_ns
        return passed_us < LOOK_EVERY_US + _LATE_US and busy_us < passed_us / 2
