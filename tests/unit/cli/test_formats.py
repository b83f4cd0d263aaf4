"""Numbers as people read them."""

from __future__ import annotations

import pytest

from epicast.cli import formats as f


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.999999, "99.999 %"), (0.5, "50 %"), (0.0, "0 %"), (0.12345, "12.345 %"), (None, f.DASH)],
)
def test_a_share_is_never_rounded_up(share: float | None, text: str) -> None:
    assert f.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (999.6, "1.0 KB"), (14_622_065, "14.6 MB"), (341_000, "341 KB"), (5e15, "5000 TB")],
)
def test_sizes_have_three_figures(value: float, text: str) -> None:
    assert f.size(value) == text


def test_other_amounts() -> None:
    assert f.count(12773) == "12,773"
    assert f.number(1.116) == "1.12"
    assert (f.ms(239.4), f.ms(12.34), f.ms(1576.2)) == ("239 ms", "12.3 ms", "1,576 ms")
    assert (f.rate(139_482), f.rate(2_500_000), f.rate(12)) == ("139 k/s", "2.5 M/s", "12/s")
    assert f.percent_rounded(0.461) == "46 %"


def test_nothing_to_be_said_is_a_dash() -> None:
    assert {tell(None) for tell in (f.count, f.number, f.percent_rounded, f.ms, f.size, f.rate)} == {f.DASH}
