"""Tables of any number of columns fit the terminal, and nothing in them is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from epicast.cli.fitting import FittingTable, layouts

HEADER = ("point", "depth", "latency median (ms)", "share of all nodes by which no parent was lost", "copies received")


def rows(count: int) -> list[tuple[str, ...]]:
    return [(f"view {at}", "1", "168 (148 to 176)", "0.9 (0.8 to 1.0)", "1.05 (1.0 to 1.1)") for at in range(count)]


def shown(table: FittingTable, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_table_that_fits_stays_as_it_is() -> None:
    assert list(layouts(HEADER, rows(2), 120)) == [(HEADER, rows(2))]


def test_one_that_is_too_wide_is_turned_on_its_side_if_that_fits() -> None:
    ((header, turned),) = layouts(HEADER, rows(2), 70)
    assert list(header) == ["point", "view 0", "view 1"]
    assert [row[0] for row in turned] == list(HEADER[1:])
    assert turned[1] == ["latency median (ms)", "168 (148 to 176)", "168 (148 to 176)"]


def test_else_it_comes_in_parts_that_all_begin_with_the_names() -> None:
    parts = list(layouts(HEADER, rows(9), 60))
    assert len(parts) == 2
    assert [header[0] for header, _ in parts] == ["point"] * 2
    assert [heading for header, _ in parts for heading in header[1:]] == list(HEADER[1:])


def test_every_part_has_all_columns_that_it_takes_to_tell_the_rows_apart() -> None:
    header = ("nodes", "c", *HEADER[1:])
    cells = [(nodes, c, *rows(1)[0][1:]) for nodes in ("10", "40", "100") for c in ("1", "1.25", "4")]
    parts = list(layouts(header, cells, 60))
    assert len(parts) > 1
    assert all(tuple(shown[:2]) == ("nodes", "c") for shown, _ in parts)
    assert all(len({tuple(row[:2]) for row in part}) == len(cells) for _, part in parts)


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_nothing_is_cut_and_no_line_is_too_long(count: int, width: int) -> None:
    lines = shown(FittingTable("Every point", HEADER, rows(count)), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    for cell in {cell for row in rows(count) for cell in row}:
        assert cell in text


@given(
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(40, 140),
    st.integers(1, 30),
)
def test_no_cell_is_left_out(columns: int, count: int, width: int, size: int) -> None:
    header = [f"column {at}" for at in range(columns)]
    cells = [[f"{row}:{at}".rjust(size if at else 1, "x") for at in range(columns)] for row in range(count)]
    parts = list(layouts(header, cells, width))
    found = [cell for _, rows in parts for row in rows for cell in row[1:]] + [c for h, _ in parts for c in h[1:]]
    assert set(found) >= {cell for row in cells for cell in row[1:]}
