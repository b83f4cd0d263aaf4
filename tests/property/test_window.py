"""SeqWindow against the set of all numbers that were received or given up."""

from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from epicast.core.window import SeqWindow

HIGHEST = 40
numbers = st.integers(0, HIGHEST)


class WindowMachine(RuleBasedStateMachine):
    @initialize(
        first=st.integers(8, 20),
        cap=st.integers(1, 6),
        provisional=st.booleans(),
        offsets=st.lists(st.integers(-8, 12), max_size=15),
    )
    def begin(self, first: int, cap: int, provisional: bool, offsets: list[int]) -> None:
        self.real = SeqWindow(first, cap, provisional=provisional)
        self.first, self.cap, self.provisional = first, cap, provisional
        self.known: set[int] = set()  # received or given up, from `first` on; the model never forgets
        self.before: set[int] = set()  # received below `first`, while it is not sure that this is the first
        self.lost = 0
        for offset in offsets:
            self.add(first + offset)

    @property
    def mark(self) -> int:
        """The lowest number that is not known."""
        return next(seq for seq in range(self.first, HIGHEST + 2) if seq not in self.known)

    @property
    def ahead(self) -> list[int]:
        return sorted(seq for seq in self.known if seq > self.mark)

    def is_known(self, seq: int) -> bool:
        if seq < self.first:
            return seq in self.before or not self.provisional
        return seq in self.known

    def give_up_the_oldest_hole(self) -> int:
        given_up = set(range(self.mark, self.ahead[0])) if self.ahead else set()
        self.known |= given_up
        self.lost += len(given_up)
        return len(given_up)

    def keep_to_the_cap(self) -> None:
        while len(self.ahead) > self.cap:
            self.give_up_the_oldest_hole()

    @rule(seq=numbers)
    def add(self, seq: int) -> None:
        refused = seq < self.first and len(self.before) == self.cap
        assert self.real.add(seq) is (not self.is_known(seq) and not refused)
        if seq >= self.first:
            self.known.add(seq)
        elif self.provisional and not refused:
            self.before.add(seq)
        self.keep_to_the_cap()

    @rule(count=st.integers(1, 5))
    def add_the_next_ones(self, count: int) -> None:
        for seq in range(self.mark, min(self.mark + count, HIGHEST + 1)):
            self.add(seq)

    @rule()
    def skip_hole(self) -> None:
        assert self.real.skip_hole() == self.give_up_the_oldest_hole()

    @precondition(lambda self: self.provisional)
    @rule(back=st.integers(-2, 8))
    def settle_nearby(self, back: int) -> None:
        self.settle(max(0, self.first - back))

    @rule(told=numbers)
    def settle(self, told: int) -> None:
        self.real.settle(told)
        if self.provisional:
            first = min([told, self.first, *self.before])
            if not self.known:  # nobody may ever have published the number that we began with
                self.known, self.first = set(self.before), first
            elif first < self.first:
                first = max(first, self.mark - self.cap)
                self.known = {seq for seq in self.known | self.before if seq >= first}
                self.first = first
            self.before, self.provisional = set(), False
            self.keep_to_the_cap()

    @rule(last=numbers, limit=st.integers(0, 8))
    def missing(self, last: int, limit: int) -> None:
        ranges = self.real.missing(last, limit)
        holes = [seq for seq in range(self.first, last + 1) if seq not in self.known]
        listed = [seq for low, high in ranges for seq in range(low, high + 1)]
        assert len(ranges) <= limit
        assert listed == holes[: len(listed)]
        assert listed == holes or len(ranges) == limit
        # Each range is as long as it can be: two that touch would be one.
        assert all(one[1] + 1 < other[0] for one, other in pairwise(ranges))

    @invariant()
    def is_the_model(self) -> None:
        everything = range(HIGHEST + 1)
        assert [seq in self.real for seq in everything] == [self.is_known(seq) for seq in everything]
        assert (self.real.first, self.real.next, self.real.lost) == (self.first, self.mark, self.lost)
        assert sorted(self.real.ahead) == self.ahead
        assert self.real.last == max(self.known, default=self.first - 1)
        assert self.real.provisional is self.provisional

    @invariant()
    def stays_small(self) -> None:
        assert len(self.real.ahead) <= self.cap
        assert len(self.real.before or ()) <= self.cap


TestWindowAgainstASet = WindowMachine.TestCase
TestWindowAgainstASet.settings = settings(max_examples=300, stateful_step_count=15)
