"""How values are spread: cumulative curves, boxes over seeds, percentiles as shades."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epicast.pipeline.figures import style
from epicast.pipeline.figures.places import Places, Published, draw_published, named_groups

Curve = tuple[str, Sequence[float], Sequence[float]]
"""A label, values in any order, and how often each was seen."""

SHADES = (1.0, 0.78, 0.56, 0.36, 0.18)
PERCENTILES = ("5th", "25th", "50th: median", "75th", "90th")


class Box(NamedTuple):
    """Five numbers that sum up the values of one parameter point, and how many values there were."""

    x: str
    low: float
    q1: float
    median: float
    q3: float
    high: float
    n: int


class Shades(NamedTuple):
    """Percentiles of one parameter point."""

    x: str
    p5: float
    p25: float
    p50: float
    p75: float
    p90: float


@style.applied()
def cdf(
    curves: Sequence[Curve],
    x_label: str,
    *,
    y_label: str = "cumulative share",
    log_x: bool = False,
    quantiles: Sequence[float] = (),
) -> Figure:
    """How large a share is at or below x. Quantiles are marked by lines across."""
    described = f"Cumulative distribution of {x_label}: {style.listed([label for label, _, _ in curves])}"
    figure = style.new_figure(described)
    axes = style.new_axes(figure, x_label, y_label)
    steps = [(label, *_steps(values, counts)) for label, values, counts in curves]
    drawn = [(label, values, shares) for label, values, shares in steps if len(values)]
    if not drawn:
        style.nothing_measured(axes)
        return figure
    left, right = _x_range([values for _, values, _ in drawn], log_x)
    handles = [_step_line(axes, at, each, left) for at, each in enumerate(drawn)]
    _cdf_axes(axes, left, right, log_x, quantiles)
    style.legend(figure, handles)
    return figure


def _steps(values: Sequence[float], counts: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Values in order, and the share at or below each."""
    pairs = sorted(
        (value, count) for value, count in zip(values, counts, strict=True) if math.isfinite(value) and count > 0
    )
    if not pairs:
        return np.empty(0), np.empty(0)
    ordered = np.array(pairs, dtype=float)
    total = np.cumsum(ordered[:, 1])
    return ordered[:, 0], total / total[-1]


def _x_range(all_values: Sequence[np.ndarray], log_x: bool) -> tuple[float, float]:
    values = np.concatenate(all_values)
    if log_x:
        positive = values[values > 0]
        low, high = (positive.min(), positive.max()) if len(positive) else (1.0, 10.0)
        return float(low) / 1.15, float(high) * 1.15
    low, high = float(values.min()), float(values.max())
    margin = (high - low) * 0.03 or max(abs(high) * 0.1, 0.5)
    return (low if low == 0 else low - margin), high + margin


def _step_line(axes: Axes, at: int, curve: tuple[str, np.ndarray, np.ndarray], left: float) -> Line2D:
    """From its least value to its greatest; on a log axis, what is zero or less is in the height at the left edge."""
    label, values, shares = curve
    looks = style.look(at)
    xs = np.maximum(np.concatenate([values[:1], values]), left)
    ys = np.concatenate([[0.0], shares])
    (line,) = axes.plot(
        xs,
        ys,
        drawstyle="steps-post",
        label=label,
        color=looks.colour,
        linestyle=looks.dashes,
        marker=looks.marker,
        markevery=(0.05 + 0.035 * (at % 4), 0.17),
    )
    return line


def _cdf_axes(axes: Axes, left: float, right: float, log_x: bool, quantiles: Sequence[float]) -> None:
    if log_x:
        axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(0, 1.03)
    style.number_axis(axes.xaxis, log=log_x)
    style.number_axis(axes.yaxis)
    for quantile in quantiles:
        axes.axhline(quantile, color=style.SOFT_INK, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        axes.annotate(
            f"{style.number(quantile * 100)} %",
            (1, quantile),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=8.5,
            color=style.SOFT_INK,
        )


@style.applied()
def boxes(
    groups: Mapping[str, Sequence[Box]],
    y_label: str,
    *,
    x_label: str = "",
    log_y: bool = False,
    published: Published | None = None,
) -> Figure:
    """One box for each parameter point: whiskers at the ends, the box from quarter to quarter, a line at the median."""
    places = Places.of({label: [box.x for box in row] for label, row in groups.items()}, published)
    figure = style.new_figure(
        f"Box plots of {y_label} by {x_label or 'parameters'}: {style.listed(list(groups))}", wide=places.wide
    )
    counts = [box.n for row in groups.values() for box in row]
    axes = style.new_axes(figure, _with_counts(x_label, counts), y_label)
    if not counts:
        style.nothing_measured(axes)
        return figure
    handles = [_box_row(axes, places, at, label, row) for at, (label, row) in enumerate(groups.items())]
    if log_y:
        axes.set_yscale("log")
    places.finish(figure, axes, log_y=log_y)
    style.legend(figure, named_groups(handles, draw_published(axes, places)))
    return figure


def _with_counts(x_label: str, counts: Sequence[int]) -> str:
    if not counts:
        return x_label
    low, high = min(counts), max(counts)
    seen = f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"
    return f"{x_label} ({seen} for each box)" if x_label else f"{seen} for each box"


def _box_row(axes: Axes, places: Places, at: int, label: str, row: Sequence[Box]) -> Patch:
    looks = style.look(at)
    row = [box for box in row if all(math.isfinite(part) for part in box[1:6])]
    stats = [{"whislo": box.low, "q1": box.q1, "med": box.median, "q3": box.q3, "whishi": box.high} for box in row]
    line: style.Looks = {"color": style.INK, "linewidth": 1.0}
    fill: style.Looks = {
        "facecolor": style.tinted(looks.colour, 0.55),
        "edgecolor": style.INK,
        "hatch": looks.hatch,
        "linewidth": 1.0,
    }
    axes.bxp(
        stats,
        positions=[places.at(label, box.x) for box in row],
        widths=places.width * 0.85,
        patch_artist=True,
        showfliers=False,
        manage_ticks=False,
        boxprops=fill,
        whiskerprops=line,
        capprops=line,
        medianprops={"color": "black", "linewidth": 2.0},
    )
    return Patch(label=label, **fill)


@style.applied()
def percentile_bars(
    groups: Mapping[str, Sequence[Shades]], y_label: str, *, x_label: str = "", published: Published | None = None
) -> Figure:
    """Bars in shades that end at the 5th, 25th, 50th, 75th and 90th percentile; the middle shade ends at the median."""
    places = Places.of({label: [bar.x for bar in row] for label, row in groups.items()}, published)
    figure = style.new_figure(
        f"Percentiles of {y_label} by {x_label or 'parameters'}: {style.listed(list(groups))}", wide=places.wide
    )
    axes = style.new_axes(figure, x_label, y_label)
    if not places.count:
        style.nothing_measured(axes)
        return figure
    for at, (label, row) in enumerate(groups.items()):
        for bar in row:
            _shaded_bar(axes, places.at(label, bar.x), places.width, style.look(at), bar[1:])
    places.finish(figure, axes)
    extra = draw_published(axes, places)
    style.legend(figure, [*_group_patches(list(groups)), *_shade_patches(len(groups)), *extra])
    return figure


def _shaded_bar(axes: Axes, place: float, width: float, looks: style.Look, ends: Sequence[float]) -> None:
    bottom = 0.0
    for end, shade in zip(ends, SHADES, strict=True):
        if not math.isfinite(end):
            continue
        axes.bar(
            place,
            end - bottom,
            width,
            bottom=bottom,
            color=style.tinted(looks.colour, shade),
            hatch=looks.hatch,
            edgecolor="white",
            linewidth=0.5,
        )
        bottom = end
    if math.isfinite(ends[2]):
        axes.hlines(ends[2], place - width / 2, place + width / 2, color="black", linewidth=1.4)


def _group_patches(labels: Sequence[str]) -> list[Patch]:
    if len(labels) < 2:
        return []
    looks = [style.look(at) for at in range(len(labels))]
    return [
        Patch(facecolor=look.colour, edgecolor="white", hatch=look.hatch, label=label)
        for look, label in zip(looks, labels, strict=True)
    ]


def _shade_patches(groups: int) -> list[Patch]:
    colour = style.INK if groups > 1 else style.PALETTE[0]
    return [
        Patch(facecolor=style.tinted(colour, shade), label=name)
        for shade, name in zip(SHADES, PERCENTILES, strict=True)
    ]
