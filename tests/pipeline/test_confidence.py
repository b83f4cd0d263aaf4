"""Means over seeds and how sure they are."""

import math

import pytest

from epicast.pipeline.confidence import Stat, from_moments, stat


def test_the_interval_is_that_of_students_t() -> None:
    """By hand: mean 3, sample deviation sqrt(2.5); t for 4 degrees of freedom and 95 % is 2.776445."""
    found = stat([5, 1, 4, 2, 3])
    half = 2.776445105 * math.sqrt(2.5) / math.sqrt(5)
    assert (found.n, found.mean, found.sd) == (5, 3.0, math.sqrt(2.5))
    assert found.low == pytest.approx(3 - half, rel=1e-9)
    assert found.high == pytest.approx(3 + half, rel=1e-9)
    assert (found.min, found.q1, found.median, found.q3, found.max) == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_two_runs_have_a_wide_interval() -> None:
    """t for one degree of freedom is 12.7062."""
    found = stat([-1.0, 0.0])
    assert found.low is not None
    assert found.low == pytest.approx(-0.5 - 12.706204736 * math.sqrt(0.5) / math.sqrt(2), rel=1e-9)


def test_what_is_never_negative_has_no_interval_below_zero() -> None:
    found = stat([0.0, 1.0])
    assert found.low == 0.0
    assert found.high == pytest.approx(0.5 + 12.706204736 * math.sqrt(0.5) / math.sqrt(2), rel=1e-9)


def test_one_run_has_no_interval() -> None:
    assert stat([7.5]) == Stat(1, 7.5, None, None, 0.0, 7.5, 7.5, 7.5, 7.5, 7.5)


def test_equal_runs_have_an_interval_without_width() -> None:
    found = stat([2.0] * 4)
    assert (found.low, found.mean, found.high, found.sd) == (2.0, 2.0, 2.0, 0.0)


def test_quartiles_lie_between_values_where_they_must() -> None:
    found = stat([1.0, 2.0, 3.0, 4.0])
    assert (found.q1, found.median, found.q3) == (1.75, 2.5, 3.25)


def test_moments_say_as_much_as_the_values() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    whole = stat(values)
    five = (whole.min, whole.q1, whole.median, whole.q3, whole.max)
    assert from_moments(5, whole.mean, whole.sd, five) == whole


def test_the_mean_of_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="no values"):
        stat([])
