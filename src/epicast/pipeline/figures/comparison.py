"""One quantity compared: bars for named things, lines against a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epicast.pipeline.figures import style
from epicast.pipeline.figures.places import Places, Published, draw_published, named_groups


class Bar(NamedTuple):
    """A mean and its confidence interval; one that is not known is as wide as nothing."""

    x: str
    mean: float
    low: float
    high: float


class Line(NamedTuple):
    """Points in the order in which they are joined; a value that is not a number makes a gap."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@style.applied()
def bars(
    groups: Mapping[str, Sequence[tuple[str, float, float, float]]],
    y_label: str,
    *,
    x_label: str = "",
    published: Published | None = None,
) -> Figure:
    """For each group its bars (`Bar`, or a tuple like it), side by side at their x labels."""
    rows = {label: [Bar(*bar) for bar in row] for label, row in groups.items()}
    places = Places.of({label: [bar.x for bar in row] for label, row in rows.items()}, published)
    figure = style.new_figure(f"{y_label} by {x_label or 'parameters'}: {style.listed(list(groups))}", wide=places.wide)
    axes = style.new_axes(figure, x_label, y_label)
    if not places.count:
        style.nothing_measured(axes)
        return figure
    handles = [_bar_row(axes, places, at, label, row) for at, (label, row) in enumerate(rows.items())]
    places.finish(figure, axes)
    style.legend(figure, named_groups(handles, draw_published(axes, places)))
    return figure


def _bar_row(axes: Axes, places: Places, at: int, label: str, row: Sequence[Bar]) -> Patch:
    looks = style.look(at)
    fill: style.Looks = {"facecolor": looks.colour, "edgecolor": "white", "hatch": looks.hatch, "linewidth": 0.5}
    known = [bar for bar in row if math.isfinite(bar.mean)]
    xs = [places.at(label, bar.x) for bar in known]
    axes.bar(xs, [bar.mean for bar in known], places.width, **fill)
    for x, bar in zip(xs, known, strict=True):
        ends = _distances([bar.mean], [bar.low], [bar.high])
        if any(map(any, ends)):
            axes.errorbar([x], [bar.mean], yerr=ends, fmt="none", ecolor=style.INK, elinewidth=1.2)
    return Patch(label=label, **fill)


def _distances(y: Sequence[float], low: Sequence[float], high: Sequence[float]) -> list[list[float]]:
    """From the mean to both ends, as matplotlib wants them: none is negative, what is not known is 0."""
    return [
        [max(0.0, mean - end) if math.isfinite(end) else 0.0 for mean, end in zip(y, low, strict=True)],
        [max(0.0, end - mean) if math.isfinite(end) else 0.0 for mean, end in zip(y, high, strict=True)],
    ]


@style.applied()
def lines(
    curves: Sequence[Line],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    published: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> Figure:
    """A quantity against a parameter, with error bars. Published points take the colour of the curve of their name."""
    figure = style.new_figure(f"{y_label} against {x_label}: {style.listed([curve.label for curve in curves])}")
    axes = style.new_axes(figure, x_label, y_label)
    if not any(len(curve.x) for curve in curves):
        style.nothing_measured(axes)
        return figure
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    handles = [_error_line(axes, at, curve) for at, curve in enumerate(curves)]
    extra = _published_points(axes, [curve.label for curve in curves], published or {})
    axes.margins(x=0.05, y=0.08)
    style.number_axis(axes.xaxis, log=log_x)
    style.mark_values(axes.xaxis, [x for curve in curves for x in curve.x], log=log_x)
    style.number_axis(axes.yaxis, log=log_y)
    style.legend(figure, [*(handles if len(handles) > 1 else []), *extra])
    return figure


def _error_line(axes: Axes, at: int, curve: Line) -> Line2D:
    looks = style.look(at)
    marks: style.Looks = {"color": looks.colour, "linestyle": looks.dashes, "marker": looks.marker}
    errors = None
    if curve.low is not None and curve.high is not None:
        errors = _distances(curve.y, curve.low, curve.high)
    axes.errorbar(curve.x, curve.y, yerr=errors, elinewidth=1.1, **marks)
    return Line2D([], [], label=curve.label, **marks)


def _published_points(
    axes: Axes, labels: Sequence[str], published: Mapping[str, Sequence[tuple[float, float]]]
) -> list[Line2D]:
    for label, points in published.items():
        colour = style.look(labels.index(label)).colour if label in labels else "black"
        looks = style.PUBLISHED | {"markeredgecolor": colour}
        axes.plot([x for x, _ in points], [y for _, y in points], **looks)
    return [style.published_handle()] if published else []
