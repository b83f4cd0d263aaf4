"""Figures that several experiments show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from matplotlib.figure import Figure

from epicast.experiments.evaluation import Edges
from epicast.pipeline.figures.comparison import Bar, Line, bars, lines
from epicast.pipeline.figures.distributions import Shades, cdf, percentile_bars
from epicast.pipeline.figures.inline_svg import svg
from epicast.pipeline.figures.places import Published
from epicast.pipeline.figures.time_series import Interval, time_series
from epicast.pipeline.figures.tree_drawing import trees
from epicast.pipeline.report.data import FigureBlock
from epicast.pipeline.results import Results

Labels = Mapping[str, object]
T = TypeVar("T")
SINCE_START = "time since the first message (s)"


def block(id: str, title: str, caption: str, figure: Figure) -> FigureBlock:  # noqa: A002
    return FigureBlock(id, title, caption, svg(figure, title))


def cdfs(
    results: Results,
    name: str,
    points: Mapping[str, Labels],
    x_label: str,
    *,
    y_label: str = "share of all, cumulated",
    log_x: bool = False,
    quantiles: Sequence[float] = (),
) -> Figure:
    """A curve for each point that has this distribution; over all its seeds together."""
    found = {label: results.distribution(name, **labels) for label, labels in points.items()}
    curves = [(label, each.values.tolist(), each.counts.tolist()) for label, each in found.items() if each is not None]
    return cdf(curves, x_label, y_label=y_label, log_x=log_x, quantiles=quantiles)


def means(
    results: Results,
    metric: str,
    groups: Mapping[str, Mapping[str, Labels]],
    y_label: str,
    *,
    x_label: str = "",
    scale: float = 1.0,
    published: Published | None = None,
) -> Figure:
    """Bars with 95 % intervals over seeds: for each group the points at their x labels."""
    rows = _rows(groups, lambda x, labels: _bar(results, metric, x, labels, scale))
    return bars(rows, y_label, x_label=x_label, published=published)


def _rows(
    groups: Mapping[str, Mapping[str, Labels]], measured: Callable[[str, Labels], T | None]
) -> dict[str, list[T]]:
    """What was measured at the points of each group; groups and points of which nothing was are left out."""
    rows = {
        group: [found for x, labels in points.items() if (found := measured(x, labels)) is not None]
        for group, points in groups.items()
    }
    return {group: row for group, row in rows.items() if row}


def _bar(results: Results, metric: str, x: str, labels: Labels, scale: float) -> Bar | None:
    stat = results.stat(metric, **labels)
    if stat is None:
        return None
    low, high = (stat.mean if end is None else end for end in (stat.low, stat.high))
    return Bar(x, scale * stat.mean, scale * low, scale * high)


def loads(
    results: Results, load: str, groups: Mapping[str, Mapping[str, Labels]], y_label: str, *, x_label: str = ""
) -> Figure:
    """Percentiles over the processes of what each sent or received, in KB a second; means over the seeds."""
    rows = _rows(groups, lambda x, labels: _shades(results, load, x, labels))
    return percentile_bars(rows, y_label, x_label=x_label)


def _shades(results: Results, load: str, x: str, labels: Labels) -> Shades | None:
    window = results.stat("window_s", **labels)
    if window is None or not window.mean:
        return None
    return _percentiles(results, load, x, labels, 1 / window.mean / 1000)


def percentiles(
    results: Results,
    name: str,
    groups: Mapping[str, Mapping[str, Labels]],
    y_label: str,
    *,
    x_label: str = "",
    scale: float = 1.0,
    published: Published | None = None,
) -> Figure:
    """Percentiles over the processes of what each has; means over the seeds."""
    rows = _rows(groups, lambda x, labels: _percentiles(results, name, x, labels, scale))
    return percentile_bars(rows, y_label, x_label=x_label, published=published)


def _percentiles(results: Results, name: str, x: str, labels: Labels, scale: float) -> Shades | None:
    found = [results.stat(f"{name}_p{percent}", **labels) for percent in (5, 25, 50, 75, 90)]
    ends = [scale * stat.mean for stat in found if stat is not None]
    return Shades(x, *ends) if len(ends) == len(found) else None


def against(
    results: Results,
    curves: Mapping[str, Mapping[float, tuple[str, Labels]]],
    x_label: str,
    y_label: str,
    *,
    scale: float = 1.0,
    published: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> Figure:
    """Curves through means with 95 % intervals over seeds: for each x a metric and the point that it is of."""
    found = [_curve(results, label, places, scale) for label, places in curves.items()]
    return lines([curve for curve in found if curve.x], x_label, y_label, published=published)


def _curve(results: Results, label: str, places: Mapping[float, tuple[str, Labels]], scale: float) -> Line:
    known = [
        (x, bar)
        for x, (metric, labels) in places.items()
        if (bar := _bar(results, metric, "", labels, scale)) is not None
    ]
    xs = [x for x, _ in known]
    return Line(
        label, xs, [bar.mean for _, bar in known], [bar.low for _, bar in known], [bar.high for _, bar in known]
    )


def shares(results: Results, name: str, points: Mapping[str, Labels], x_label: str, y_label: str) -> Figure:
    """How large a share has each value of a distribution; over all seeds together."""
    found = {label: results.distribution(name, **labels) for label, labels in points.items()}
    curves = [
        Line(label, each.values.tolist(), (each.counts / each.counts.sum()).tolist())
        for label, each in found.items()
        if each is not None
    ]
    return lines(curves, x_label, y_label)


def over_time(
    results: Results,
    name: str,
    points: Mapping[str, Labels],
    y_label: str,
    *,
    shaded: Sequence[Interval] = (),
) -> Figure:
    """A line for each point that has this series: the mean over its seeds."""
    lines = [_line(results, name, label, labels) for label, labels in points.items()]
    return time_series([line for line in lines if line], y_label, x_label=SINCE_START, shaded=shaded)


def several_over_time(results: Results, names: Mapping[str, str], labels: Labels, y_label: str) -> Figure:
    """A line for each series of one point, by what it is to be called."""
    lines = [_line(results, name, label, labels) for label, name in names.items()]
    return time_series([line for line in lines if line], y_label, x_label=SINCE_START)


def _line(results: Results, name: str, label: str, labels: Labels) -> Line | None:
    found = results.series(name, **labels)
    return None if found is None else Line(label, *(part.tolist() for part in found))


def drawn_trees(samples: Mapping[str, Edges]) -> Figure:
    """Side by side; the edges go from child to parent."""
    panels = []
    for title, edges in samples.items():
        if edges:
            children = {child for child, _ in edges}
            roots = [parent for _, parent in edges if parent not in children]
            root = roots[0] if roots else edges[0][1]
            panels.append((title, [(parent, child) for child, parent in edges], root))
    return trees(panels)
