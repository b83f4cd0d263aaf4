"""The payloads of the benchmark and the subscribers' books about them.

A payload starts with a number, the time of its publication and what to do about it; the rest is padding. The number's
upper part is the phase: whatever is left of an earlier phase is told apart from this one's. Numbers come in turn, so
a subscriber compares and adds one; only what is out of turn costs more.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from time import monotonic_ns

HEADER = Struct("<QQB")
unpack_header = HEADER.unpack_from
PHASE_SHIFT = 40
NO_NUMBER = -1  # while there is a gap, nothing is in turn
PROBE, WARM, RATE, FLOOD = 1, 2, 3, 1 << 20  # phases; of the third there may be many
TIMED, MARK, LAST = 1, 2, 4  # flags: take the latency; tell that you are so far; the phase ends here


def first_of(phase: int) -> int:
    return phase << PHASE_SHIFT


class Payloads:
    def __init__(self, size: int) -> None:
        self.padding = bytes(size - HEADER.size)

    def one(self, number: int, flags: int = 0) -> bytes:
        return HEADER.pack(number, monotonic_ns(), flags) + self.padding

    def many(self, start: int, stop: int, last_flags: int) -> list[bytes]:
        """Numbers from start up to, not including, stop; the flags are of the last one."""
        pack, padding = HEADER.pack, self.padding
        made = [pack(number, 0, 0) + padding for number in range(start, stop - 1)]
        made.append(pack(stop - 1, 0, last_flags) + padding)
        return made


class Tally:
    """What one subscriber has received in this phase."""

    def __init__(self, on_mark: Callable[[int], None], on_event: Callable[[], None]) -> None:
        """`on_event` is called when a phase has begun, and when it may be complete."""
        self.on_mark, self.on_event = on_mark, on_event
        self._begin(0)

    def _begin(self, phase: int) -> None:
        self.phase, self.next = phase, first_of(phase)
        self.gap = 0  # the first number that is not there, while later ones are
        self.early: set[int] = set()  # those
        self.duplicates = self.last_ns = 0
        self.total: int | None = None
        self.latencies_ns: list[int] = []

    @property
    def received(self) -> int:
        return (self.gap if self.early else self.next) - first_of(self.phase) + len(self.early)

    @property
    def complete(self) -> bool:
        return self.received == self.total

    def take(self, payload: bytes | bytearray | memoryview) -> None:
        number, stamp, flags = unpack_header(payload)
        if number == self.next:
            self.next = number + 1
        else:
            self._out_of_turn(number)
        if flags:
            self._flagged(number, stamp, flags)

    def _out_of_turn(self, number: int) -> None:
        phase = number >> PHASE_SHIFT
        if phase < self.phase:
            return
        begins = phase > self.phase
        if begins:
            self._begin(phase)
        low = self.gap if self.early else self.next
        if number < low or number in self.early:
            self.duplicates += 1
        else:
            self.early.add(number)
        while low in self.early:
            self.early.remove(low)
            low += 1
        self.gap, self.next = (low, NO_NUMBER) if self.early else (0, low)
        self.last_ns = monotonic_ns()
        if begins or self.total is not None:
            self.on_event()

    def _flagged(self, number: int, stamp: int, flags: int) -> None:
        if number >> PHASE_SHIFT != self.phase:
            return
        self.last_ns = monotonic_ns()
        if flags & TIMED:
            self.latencies_ns.append(self.last_ns - stamp)
        if flags & MARK:
            self.on_mark(number + 1 - first_of(self.phase))
        if flags & LAST:
            self.total = number + 1 - first_of(self.phase)
            self.on_event()
