from collections import Counter
from random import Random

import pytest

from epicast.core.ordered_set import OrderedSet


def test_members_keep_the_order_of_insertion() -> None:
    assert list(OrderedSet([3, 1, 2])) == [3, 1, 2]


def test_adding_tells_whether_the_member_is_new() -> None:
    members: OrderedSet[str] = OrderedSet()
    assert members.add("a") is True
    assert members.add("a") is False
    assert list(members) == ["a"]


def test_a_repeated_item_counts_once() -> None:
    members = OrderedSet([1, 2, 1])
    assert members.items == [1, 2]
    assert len(members) == 2


def test_discarding_tells_whether_the_member_was_there() -> None:
    members = OrderedSet([1])
    assert members.discard(1) is True
    assert members.discard(1) is False
    assert len(members) == 0


def test_the_last_member_fills_the_hole() -> None:
    members = OrderedSet([1, 2, 3, 4])
    members.discard(2)
    assert list(members) == [1, 4, 3]


def test_discarding_the_last_member_moves_nothing() -> None:
    members = OrderedSet([1, 2, 3])
    members.discard(3)
    assert list(members) == [1, 2]
    assert 3 not in members


def test_a_member_that_was_moved_can_still_be_discarded() -> None:
    members = OrderedSet([1, 2, 3])
    members.discard(1)  # 3 moves to the front
    members.discard(3)
    assert list(members) == [2]
    assert members.add(3) is True
    assert list(members) == [2, 3]


def test_clearing_forgets_everything() -> None:
    members = OrderedSet([1, 2])
    members.clear()
    assert list(members) == []
    assert 1 not in members
    assert members.add(1) is True


def test_equality_does_not_look_at_the_order() -> None:
    assert OrderedSet([1, 2]) == OrderedSet([2, 1])
    assert OrderedSet([1, 2]) != OrderedSet([1, 3])
    assert OrderedSet([1]) != [1]


def test_it_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(OrderedSet([1]))


def test_it_shows_its_members() -> None:
    assert repr(OrderedSet([2, 1])) == "OrderedSet([2, 1])"


def test_every_member_is_picked_about_equally_often() -> None:
    members, rng = OrderedSet("abcd"), Random(1)
    counts = Counter(members.pick(rng) for _ in range(4000))
    assert set(counts) == set("abcd")
    assert all(900 < count < 1100 for count in counts.values())


def test_a_sample_is_distinct_members_in_random_order() -> None:
    members, rng = OrderedSet(range(10)), Random(1)
    samples = [members.sample(rng, 3) for _ in range(3000)]
    assert all(len(set(sample)) == 3 and set(sample) <= set(range(10)) for sample in samples)
    firsts = Counter(sample[0] for sample in samples)
    assert all(220 < firsts[member] < 380 for member in range(10))


def test_a_sample_of_too_many_is_everyone() -> None:
    assert sorted(OrderedSet([3, 1, 2]).sample(Random(1), 9)) == [1, 2, 3]
    assert OrderedSet[int]().sample(Random(1), 2) == []


def test_equal_seeds_pick_alike() -> None:
    members = OrderedSet(range(100))
    one, other = Random(7), Random(7)
    assert [members.pick(one) for _ in range(20)] == [members.pick(other) for _ in range(20)]
    assert members.sample(one, 20) == members.sample(other, 20)
