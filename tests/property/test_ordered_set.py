"""OrderedSet against a plain list that is searched from end to end."""

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from epicast.core.ordered_set import OrderedSet

items = st.integers(0, 12)


class OrderedSetMachine(RuleBasedStateMachine):
    @initialize(start=st.lists(items, max_size=6))
    def begin(self, start: list[int]) -> None:
        self.real = OrderedSet(start)
        self.model = list(dict.fromkeys(start))

    @rule(item=items)
    def add(self, item: int) -> None:
        assert self.real.add(item) is (item not in self.model)
        if item not in self.model:
            self.model.append(item)

    @rule(item=items)
    def discard(self, item: int) -> None:
        assert self.real.discard(item) is (item in self.model)
        if item in self.model:
            self.model[self.model.index(item)] = self.model[-1]
            self.model.pop()

    @rule()
    def clear(self) -> None:
        self.real.clear()
        self.model.clear()

    @rule(seed=st.integers(0, 99), count=st.integers(0, 20))
    def choose(self, seed: int, count: int) -> None:
        sample = self.real.sample(Random(seed), count)
        assert len(sample) == len(set(sample)) == min(count, len(self.model))
        assert set(sample) <= set(self.model)
        if self.model:
            assert self.real.pick(Random(seed)) in self.model

    @invariant()
    def is_the_model(self) -> None:
        assert list(self.real) == self.real.items == self.model
        assert len(self.real) == len(self.model)
        assert [item in self.real for item in range(13)] == [item in self.model for item in range(13)]
        assert self.real == OrderedSet(reversed(self.model))


TestOrderedSetAgainstAList = OrderedSetMachine.TestCase
