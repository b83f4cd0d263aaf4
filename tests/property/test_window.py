"""SeqWindow against the set of all numbers that were received or given up."""

from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from epicast.core.window import SeqWindow

HIGHEST = 40
numbers = st.integers(0, HIGHEST)


class WindowMachine(RuleBasedStateMachine):
    @initialize(first=st.integers(0, 5), cap=st.integers(1, 6), provisional=st.booleans())
    def begin(self, first: int, cap: int, provisional: bool) -> None:
        self.real = SeqWindow(first, cap, provisional=provisional)
        self.cap = cap
        self.provisional = provisional
        self.known = set(range(first))  # received or given up; the model never forgets
        self.lost = 0

    @property
    def mark(self) -> int:
        """The lowest number that is not known."""
        return next(seq for seq in range(HIGHEST + 2) if seq not in self.known)

    @property
    def ahead(self) -> list[int]:
        return sorted(seq for seq in self.known if seq > self.mark)

    def give_up_below(self, seq: int) -> int:
        """Everything below is known from now on; returns how many numbers were not."""
        missing = set(range(seq)) - self.known
        self.known |= missing
        return len(missing)

    def skip_in_the_model(self) -> int:
        if not self.ahead:
            return 0
        given_up = self.give_up_below(self.ahead[0])
        if self.provisional:
            given_up, self.provisional = 0, False
        self.lost += given_up
        return given_up

    @rule(seq=numbers)
    def add(self, seq: int) -> None:
        assert self.real.add(seq) is (seq not in self.known)
        self.known.add(seq)
        if len(self.ahead) > self.cap:
            self.skip_in_the_model()

    @rule(count=st.integers(1, 5))
    def add_the_next_ones(self, count: int) -> None:
        for seq in range(self.mark, min(self.mark + count, HIGHEST + 1)):
            self.add(seq)

    @rule()
    def skip_hole(self) -> None:
        assert self.real.skip_hole() == self.skip_in_the_model()

    @rule(first=numbers)
    def settle(self, first: int) -> None:
        self.real.settle(first)
        if self.provisional:
            self.provisional = False
            self.give_up_below(min([first, *self.ahead]))

    @rule(last=numbers, limit=st.integers(0, 8))
    def missing(self, last: int, limit: int) -> None:
        ranges = self.real.missing(last, limit)
        holes = [seq for seq in range(last + 1) if seq not in self.known]
        listed = [seq for low, high in ranges for seq in range(low, high + 1)]
        assert len(ranges) <= limit
        assert listed == holes[: len(listed)]
        assert listed == holes or len(ranges) == limit
        # Each range is as long as it can be: two that touch would be one.
        assert all(one[1] + 1 < other[0] for one, other in pairwise(ranges))

    @invariant()
    def is_the_model(self) -> None:
        assert [seq in self.real for seq in range(HIGHEST + 1)] == [seq in self.known for seq in range(HIGHEST + 1)]
        assert self.real.next == self.mark
        assert sorted(self.real.ahead) == self.ahead
        assert self.real.last == max(self.known, default=-1)
        assert self.real.lost == self.lost
        assert self.real.provisional is self.provisional

    @invariant()
    def stays_small(self) -> None:
        assert len(self.real.ahead) <= self.cap


TestWindowAgainstASet = WindowMachine.TestCase
