"""Spans against sets of numbers, which are the same and slower; and what a window has to say in spans."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from epicast.core.window import SeqWindow
from epicast.dissemination.spans import Span, holds, merged, minus, of_window

numbers = st.integers(0, 40)
lists = st.lists(st.tuples(numbers, numbers), max_size=12)


def as_set(spans: list[Span]) -> set[int]:
    return {number for first, last in spans for number in range(first, last + 1)}


@given(lists)
def test_merged_spans_hold_the_same_numbers_in_order_and_do_not_touch(spans: list[Span]) -> None:
    found = merged(spans)
    assert as_set(found) == as_set(spans)
    assert all(first <= last for first, last in found)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(found))


@given(lists, lists)
def test_minus_leaves_the_numbers_that_the_others_do_not_hold(a: list[Span], b: list[Span]) -> None:
    found = minus(merged(a), merged(b))
    assert as_set(found) == as_set(a) - as_set(b)
    assert found == merged(found)


@given(lists, numbers)
def test_a_number_is_held_or_not(spans: list[Span], number: int) -> None:
    assert holds(merged(spans), number) == (number in as_set(spans))


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 8))
def test_a_window_tells_just_the_numbers_that_it_would_not_take(seqs: list[int], cap: int) -> None:
    window = SeqWindow(seqs[0] if seqs else 0, cap, provisional=bool(seqs) and seqs[0] > 0)
    for seq in seqs:
        window.add(seq)
    told = as_set(of_window(window))
    full = window.before is not None and len(window.before) >= cap
    for seq in range(40):
        assert (seq in told) == (seq in window or (full and seq < window.first))


def test_huge_spans_are_no_work() -> None:
    huge = (1 << 63) - 1
    assert minus([(0, huge)], [(5, 7)]) == [(0, 4), (8, huge)]
    assert merged([(0, huge), (3, 4)]) == [(0, huge)]
