"""Histograms stay small, keep small numbers exact and lose no count."""

from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicast.pipeline.metrics.bins import FINE_BITS, VALUES_MAX, bounded, fine_bin_sql

numbers = st.integers(-(2**50), 2**50)


def test_few_values_are_kept_as_they_are() -> None:
    assert bounded([(50_000, 3), (-7, 1), (100_000, 2)], unit=1000) == [(-0.007, 1), (50.0, 3), (100.0, 2)]


def test_many_values_share_bins_that_are_narrow_for_their_size() -> None:
    found = bounded([(value, 1) for value in range(10_000)])
    assert len(found) <= VALUES_MAX
    assert sum(count for _, count in found) == 10_000
    assert [value for value, _ in found[:64]] == list(range(64))
    assert all(count <= max(1, value / 32) for value, count in found)


def test_a_bin_stands_at_the_middle_of_its_numbers() -> None:
    values = range(128, 128 + 2 * (VALUES_MAX + 1))
    found = bounded([(value, 1) for value in values])
    mean = sum(value * count for value, count in found) / len(values)
    assert abs(mean - sum(values) / len(values)) < 1
    assert (128.5, 2) in found


def test_bins_that_are_few_stand_at_their_middles_too() -> None:
    assert bounded([(128, 5), (3, 1)], binned=True) == [(3.0, 1), (128.5, 5)]


@pytest.mark.parametrize("bits", [11, 20, 40, 62])
def test_numbers_of_any_size_fit_and_none_is_lost(bits: int) -> None:
    chance = Random(bits)
    counts = {chance.choice((-1, 1)) * chance.getrandbits(chance.randint(10, bits)): 1 + n % 3 for n in range(5000)}
    assert len(counts) > VALUES_MAX
    found = bounded(counts.items())
    assert len(found) <= VALUES_MAX
    assert sum(count for _, count in found) == sum(counts.values())
    assert sum(count for value, count in found if value < 0) == sum(n for value, n in counts.items() if value < 0)


@settings(max_examples=30)
@given(st.lists(numbers, min_size=1, max_size=50))
def test_fine_bins_of_sql_lose_nothing_that_coarser_ones_would_keep(values: list[int]) -> None:
    """The end of a number's bin has its leading bits."""
    asked = ", ".join(f"({value})" for value in values)
    sql = f"SELECT v, {fine_bin_sql('v')} FROM (VALUES {asked}) AS t(v)"
    for value, edge in duckdb.sql(sql).fetchall():
        width = 1 << max(0, abs(value).bit_length() - FINE_BITS)
        assert edge % width == 0
        assert abs(value) - width < abs(edge) <= abs(value)
        assert edge * value >= 0
