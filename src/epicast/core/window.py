"""Which sequence numbers of one source have been received: a high-water mark and the few numbers above it.

Unlike a set of seen ids it does not grow with the stream, and forgetting never reopens an old number: whatever lies
below the mark has been received or given up for good.

A process that meets a source in mid-stream does not know where its duty begins. Its window is *provisional*: it starts
with the number that came first, takes what lies `before` it as it comes, and is settled once someone tells the first
number that matters.
"""

from __future__ import annotations

NOTHING: dict[int, None] = {}
"""The table of all windows without a hole, never written to: nearly all windows are, and it costs them no memory."""


class SeqWindow:
    __slots__ = ("ahead", "before", "cap", "first", "lost", "next")

    def __init__(self, first: int = 0, cap: int = 1024, *, provisional: bool = False) -> None:
        self.first = first  # where our duty begins, as far as we know
        self.next = first  # everything from `first` up to here was received or given up
        self.ahead = NOTHING  # received, above a hole
        self.before: dict[int, None] | None = {} if provisional else None  # received, below `first`
        self.cap = cap  # of both tables
        self.lost = 0  # given up

    @property
    def provisional(self) -> bool:
        return self.before is not None

    def __contains__(self, seq: int) -> bool:
        if seq < self.first and self.before is not None:
            return seq in self.before
        return seq < self.next or seq in self.ahead

    @property
    def last(self) -> int:
        """The highest number received, or `next - 1`."""
        return max(self.ahead, default=self.next - 1)

    @property
    def highest(self) -> int | None:
        """The highest number received; None if none was."""
        if self.ahead or self.next > self.first:
            return self.last
        return max(self.before) if self.before else None

    def add(self, seq: int) -> bool:
        """True if the number is new. At the cap the oldest hole is given up, and counted in `lost`."""
        if seq == self.next:
            self.next = seq + 1
            if self.ahead:
                self._absorb()
            return True
        if seq < self.next:
            return self.before is not None and seq < self.first and self._add_before(seq)
        if seq in self.ahead:
            return False
        if self.ahead is NOTHING:
            self.ahead = {}
        self.ahead[seq] = None
        if len(self.ahead) > self.cap:
            self.skip_hole()
        return True

    def settle(self, first: int) -> None:
        """The stream begins at `first` for us, or at the lowest number seen if that is lower."""
        if self.before is None:
            return
        first = min(first, self.first, min(self.before, default=self.first))
        if self.next == self.first and not self.ahead:
            # Nothing came at or above the number that we began with: perhaps nobody ever published it.
            self.first = self.next = first
            self.ahead = dict.fromkeys(sorted(self.before)[-self.cap :]) or NOTHING
            self._absorb()
        elif first < self.first:
            # No farther back than the table of numbers above a hole can reach.
            first = max(first, self.next - self.cap)
            self.ahead = {**self.ahead, **dict.fromkeys(range(max(self.first, first), self.next))}
            self.ahead.update((seq, None) for seq in self.before if seq >= first)
            self.first = self.next = first
            self._absorb()
            while len(self.ahead) > self.cap:
                self.skip_hole()
        self.before = None

    def skip_hole(self) -> int:
        """Give up the oldest hole; returns how many numbers that loses."""
        if not self.ahead:
            return 0
        lowest = min(self.ahead)
        lost = lowest - self.next
        self.lost += lost
        self.next = lowest
        self._absorb()
        return lost

    def skip_to(self, seq: int) -> int:
        """Give up all that is missing below this number; returns how many numbers that loses."""
        if seq <= self.next:
            return 0
        ahead = [each for each in self.ahead if each < seq]
        for each in ahead:
            del self.ahead[each]
        lost = seq - self.next - len(ahead)
        self.lost += lost
        self.next = seq
        self._absorb()
        return lost

    def reopen(self, seq: int) -> None:
        """Expect the numbers again that were given up from this one on. None of them, and none above, has come."""
        assert not self.ahead
        if self.first <= seq < self.next:
            self.lost -= self.next - seq
            self.next = seq

    def missing(self, last: int, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` ranges (first and last number) that lack below or at `last`."""
        ranges: list[tuple[int, int]] = []
        expected = self.next
        for seq in sorted(self.ahead):
            if len(ranges) == limit:
                return ranges
            if seq > last:
                break
            if seq > expected:
                ranges.append((expected, seq - 1))
            expected = seq + 1
        if expected <= last and len(ranges) < limit:
            ranges.append((expected, last))
        return ranges

    def _add_before(self, seq: int) -> bool:
        assert self.before is not None
        if seq in self.before or len(self.before) >= self.cap:
            return False
        self.before[seq] = None
        return True

    def _absorb(self) -> None:
        ahead, following = self.ahead, self.next
        while following in ahead:
            del ahead[following]
            following += 1
        self.next = following
        if not ahead:
            self.ahead = NOTHING
