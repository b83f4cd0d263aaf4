"""A quantity over time, with what it may deviate by and what happened meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epicast.pipeline.figures import style
from epicast.pipeline.figures.comparison import Line

_MARKED_MAX = 40  # with more points a line would be all markers


class Interval(NamedTuple):
    """A stretch of time that is shaded, such as one of churn."""

    start: float
    end: float
    label: str


@style.applied()
def time_series(
    series: Sequence[Line],
    y_label: str,
    *,
    x_label: str = "time (s)",
    shaded: Sequence[Interval | tuple[float, float, str]] = (),
    from_zero: bool = True,
) -> Figure:
    """A figure across the page. Bands reach from `low` to `high` of each line."""
    figure = style.new_figure(f"{y_label} over time: {style.listed([line.label for line in series])}", wide=True)
    axes = style.new_axes(figure, x_label, y_label)
    if not any(len(line.x) for line in series):
        style.nothing_measured(axes)
        return figure
    handles = [_line_with_band(axes, at, line) for at, line in enumerate(series)]
    _limit_x(axes, series)
    rows = _rows(axes, [Interval(*interval) for interval in shaded])
    _limit_y(axes, series, from_zero, rows=max((row for _, row in rows), default=-1) + 1)
    for interval, row in rows:
        _shade(axes, interval, row)
    style.number_axis(axes.xaxis)
    style.number_axis(axes.yaxis)
    style.legend(figure, handles if len(handles) > 1 else [])
    return figure


def _line_with_band(axes: Axes, at: int, line: Line) -> Line2D:
    looks = style.look(at)
    if line.low is not None and line.high is not None:
        axes.fill_between(line.x, line.low, line.high, color=style.tinted(looks.colour, 0.6), alpha=0.3, linewidth=0)
    (drawn,) = axes.plot(
        line.x,
        line.y,
        label=line.label,
        color=looks.colour,
        linestyle=looks.dashes,
        marker=looks.marker,
        markevery=1 if len(line.x) <= _MARKED_MAX else (0.02 + 0.015 * (at % 5), 0.09),
        markersize=4.5,
    )
    return drawn


def _limit_x(axes: Axes, series: Sequence[Line]) -> None:
    xs = [x for line in series for x in line.x if math.isfinite(x)]
    if xs and min(xs) < max(xs):
        axes.set_xlim(min(xs), max(xs))


def _limit_y(axes: Axes, series: Sequence[Line], from_zero: bool, *, rows: int) -> None:
    """Room above the lines where the names of shaded intervals stand."""
    low, high = axes.get_ylim()
    if from_zero:
        least = min((value for line in series for value in line.y if math.isfinite(value)), default=0.0)
        low = low if least < 0 else 0.0
    axes.set_ylim(low, high + (high - low) * 0.1 * rows)


def _rows(axes: Axes, intervals: Sequence[Interval]) -> list[tuple[Interval, int]]:
    """What can be seen of each interval, and the row of its name: the first one that is free there."""
    left, right = axes.get_xlim()
    per_point = (right - left) / ((style.WIDE_IN - 0.9) * style.POINTS_PER_IN)
    free_from: list[float] = []
    placed = []
    for start, end, label in sorted(intervals):
        if min(right, end) <= max(left, start):
            continue
        seen = Interval(max(left, start), min(right, end), style.shortened(label, 40))
        row = next((at for at, free in enumerate(free_from) if free <= seen.start), len(free_from))
        free_from[row : row + 1] = [seen.start + (style.text_points(seen.label, 9) + 12) * per_point]
        placed.append((seen, row))
    return placed


def _shade(axes: Axes, interval: Interval, row: int) -> None:
    start, end, label = interval
    axes.axvspan(start, end, facecolor="#e8ebef", edgecolor="none", zorder=0)
    for edge in (start, end):
        axes.axvline(edge, color=style.SOFT_INK, linewidth=0.7, linestyle=(0, (3, 3)), zorder=1)
    axes.annotate(
        label,
        (start, 1),
        xycoords=("data", "axes fraction"),
        xytext=(5, -4 - 13 * row),
        textcoords="offset points",
        va="top",
        fontsize=9,
        fontstyle="italic",
        color=style.SOFT_INK,
    )
