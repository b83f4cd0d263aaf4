"""Exact percentiles, however the numbers came in."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from epicast.sim import histogram
from epicast.sim.histogram import Histogram


def test_nothing_has_no_percentiles() -> None:
    empty = Histogram()
    assert (len(empty), empty.mean(), empty.maximum(), empty.percentile(50)) == (0, None, None, None)


def test_percentiles_are_values_that_occurred() -> None:
    some = Histogram()
    some.add(np.array([30, 10, 20, 40], np.int64))
    assert [some.percentile(p) for p in (1, 25, 26, 50, 75, 99, 100)] == [10, 10, 20, 20, 30, 40, 40]
    assert (len(some), some.mean(), some.maximum()) == (4, 25.0, 40)


def test_merging_in_between_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histogram, "BUFFER", 100)
    rng, some, values = Random(1), Histogram(), list[int]()
    for _ in range(50):
        chunk = [int(rng.expovariate(1e-3)) for _ in range(rng.randrange(40))]
        values += chunk
        some.add(np.array(chunk, np.int64))
    values.sort()
    assert len(some) == len(values)
    for percent in (1, 10, 50, 90, 99, 100):
        assert some.percentile(percent) == values[-(-percent * len(values) // 100) - 1]
    assert some.mean() == sum(values) / len(values)
