"""Dissemination trees, drawn from the top down or, where they are too broad for that, in rings around the root."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from epicast.pipeline.figures import style
from epicast.pipeline.figures.tree_layout import children_of, depths, tidy

Edges = Sequence[tuple[int, int]]
"""(parent, child)."""

Point = tuple[float, float]

_SPACING_MIN = 3.6  # points between two neighbours from the top down; closer ones go in rings
_WEDGE = 0.06  # of the circle is left free for the numbers of the rings
_LEVELS_NAMED_MAX = 24
_LEVELS_IN_MAX, _RINGS_IN_MAX = 7.0, 6.4  # heights
_REACH = 1.06  # how far the axes go beyond the last ring
_LABELLED_MAX = 40  # nodes up to which there is room for their numbers
_EDGE, _LEAF, _INNER = "#9aa5b1", "#56B4E9", "#0072B2"


@dataclass(frozen=True)
class _Drawn:
    """A tree with places for its nodes, ready to be drawn."""

    root: int
    children: dict[int, list[int]]
    depth: dict[int, int]
    place: dict[int, Point]
    breadth: float  # from the first to the last, when the least distance on a level (or on the first ring) is 1
    radial: bool
    other_edges: list[tuple[int, int]]
    unreached: int

    @property
    def deepest(self) -> int:
        return max(self.depth.values())


@style.applied()
def tree(edges: Edges, root: int, *, title: str = "") -> Figure:
    """One tree across the page."""
    return _figure([(title, edges, root)])


@style.applied()
def trees(panels: Sequence[tuple[str, Edges, int]]) -> Figure:
    """Trees (title, edges, root) side by side, all of them drawn in the same way."""
    return _figure(panels)


def _figure(panels: Sequence[tuple[str, Edges, int]]) -> Figure:
    columns = 2 if len(panels) == 4 else max(1, min(len(panels), 3))
    lines = math.ceil(len(panels) / columns)
    width = style.WIDE_IN / columns
    drawn = _placed(panels, width)
    height = _height_in(drawn, width) * max(lines, 1) + 0.4
    figure = style.new_figure(_described(panels, drawn), wide=True, height_in=height)
    grid = figure.subplots(max(lines, 1), columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, (title, _, _), each in zip(grid, panels, drawn, strict=False):
        _draw(axes, title, each, width * style.POINTS_PER_IN, max(other.deepest for other in drawn))
    if not drawn:
        style.nothing_measured(grid[0])
    style.legend(figure, _handles(drawn))
    return figure


def _described(panels: Sequence[tuple[str, Edges, int]], drawn: Sequence[_Drawn]) -> str:
    parts = [
        f"{title or 'tree'} with {len(each.depth):,} processes and depth {each.deepest}"
        for (title, _, _), each in zip(panels, drawn, strict=True)
    ]
    return "Dissemination trees: " + "; ".join(parts)


# Places


def _placed(panels: Sequence[tuple[str, Edges, int]], width_in: float) -> list[_Drawn]:
    """From the top down if that fits for all, else in rings."""
    room = (width_in - 0.9) * style.POINTS_PER_IN
    down = [_laid_out(edges, root, radial=False) for _, edges, root in panels]
    if max((each.breadth for each in down), default=0.0) * _SPACING_MIN <= room:
        return down
    return [_laid_out(edges, root, radial=True) for _, edges, root in panels]


def _laid_out(edges: Edges, root: int, *, radial: bool) -> _Drawn:
    children = children_of(edges, root)
    depth = depths(children, root)
    kept = {(parent, child) for parent, row in children.items() for child in row}
    others = [edge for edge in dict.fromkeys(edges) if edge not in kept and edge[0] in depth and edge[1] in depth]
    unreached = len({node for edge in edges for node in edge} - depth.keys())
    along = tidy(children, root, _ring_gap if radial else _level_gap)
    place = _in_rings(along, depth) if radial else {node: (x, -float(depth[node])) for node, x in along.items()}
    return _Drawn(root, children, depth, place, max(along.values()), radial, others, unreached)


def _level_gap(depth: int) -> float:
    return 1.0


def _ring_gap(depth: int) -> float:
    """An inner ring has less room for the same angle."""
    return 1.0 / max(depth, 1)


def _in_rings(along: dict[int, float], depth: dict[int, int]) -> dict[int, Point]:
    full = _circle(max(along.values()))
    angles = {node: 2 * math.pi * x / full for node, x in along.items()}
    return {node: (depth[node] * math.sin(angle), depth[node] * math.cos(angle)) for node, angle in angles.items()}


def _circle(breadth: float) -> float:
    """The whole turn, in the measure of the breadth."""
    return (breadth or 1.0) * (1 + _WEDGE)


def _height_in(drawn: Sequence[_Drawn], width_in: float) -> float:
    if any(each.radial for each in drawn):
        return min(width_in, _RINGS_IN_MAX)
    deepest = max((each.deepest for each in drawn), default=1)
    return min(_LEVELS_IN_MAX, max(2.2, 0.42 * (deepest + 1) + 0.3))


# Ink


def _draw(axes: Axes, title: str, drawn: _Drawn, width: float, deepest: int) -> None:
    if title:
        axes.set_title(style.shortened(title, 60))
    if drawn.radial:
        _draw_rings(axes, drawn)
    else:
        _draw_levels(axes, drawn, deepest)
    _draw_edges(axes, drawn)
    labelled = len(drawn.depth) <= _LABELLED_MAX and deepest < 12
    _draw_nodes(axes, drawn, _size(drawn, width, labelled))
    if labelled:
        for node, (x, y) in drawn.place.items():
            colour = "white" if drawn.children[node] else style.INK
            axes.text(x, y, str(node), ha="center", va="center", fontsize=7, color=colour, zorder=5)
    if drawn.unreached:
        note = f"{drawn.unreached:,} more without a way from the root"
        axes.annotate(note, (0.5, 0), xycoords="axes fraction", ha="center", va="top", fontsize=9, color="#a33")


def _size(drawn: _Drawn, width: float, labelled: bool) -> float:
    """Diameter of a node in points: as large as the closest neighbours allow."""
    if labelled:
        return 15.0
    if drawn.radial:
        ring = min(width, _RINGS_IN_MAX * style.POINTS_PER_IN) / (2 * drawn.deepest * _REACH)
        return max(1.8, min(4.4, 2 * math.pi / _circle(drawn.breadth) * ring * 0.8))
    level = _LEVELS_IN_MAX * style.POINTS_PER_IN / (drawn.deepest + 1)
    return max(2.4, min(7.0, (width - 60) / (drawn.breadth + 1) * 0.78, level * 0.7))


_SOFT: style.Looks = {"fontsize": 8.5, "color": style.SOFT_INK, "annotation_clip": False}


def _draw_levels(axes: Axes, drawn: _Drawn, deepest: int) -> None:
    """A faint line for each depth; its number on the left, how many stand there on the right."""
    axes.set_xlim(-0.02 * drawn.breadth - 1, drawn.breadth * 1.02 + 1)
    head = max(0.6, deepest / 18)
    axes.set_ylim(-deepest - 0.45, head * 1.25)
    every = math.ceil((deepest + 1) / _LEVELS_NAMED_MAX)
    for depth, count in sorted(Counter(drawn.depth.values()).items()):
        axes.axhline(-depth, color=style.FAINT, linewidth=0.6, zorder=0)
        if depth % every == 0:
            _beside_level(axes, -depth, str(depth), f"{count:,}")
    _beside_level(axes, head, "depth", "processes", shift=26)


def _beside_level(axes: Axes, y: float, left: str, right: str, shift: float = 0.0) -> None:
    for text, x, ha, away in ((left, 0, "right", -4), (right, 1, "right" if shift else "left", shift or 4)):
        axes.annotate(
            text, (x, y), (away, 0), ("axes fraction", "data"), textcoords="offset points", ha=ha, va="center", **_SOFT
        )


def _draw_rings(axes: Axes, drawn: _Drawn) -> None:
    """A ring for each depth with its number on top, and beside them how many stand on each."""
    axes.set_aspect("equal")
    reach = drawn.deepest * _REACH
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    turn = np.linspace(0, 2 * math.pi, 120)
    top = -math.pi * _WEDGE
    for depth in range(1, drawn.deepest + 1):
        axes.plot(depth * np.sin(turn), depth * np.cos(turn), color=style.FAINT, linewidth=0.6, zorder=0)
        at = (depth * math.sin(top), depth * math.cos(top))
        axes.annotate(str(depth), at, ha="center", va="center", bbox=_BACK, zorder=2, **(_SOFT | {"fontsize": 7.5}))
    counts = sorted(Counter(drawn.depth.values()).items())
    table = "\n".join(["depth: processes", *(f"{depth}: {count:,}" for depth, count in counts)])
    axes.annotate(table, (1, 1), xycoords="axes fraction", ha="left", va="top", linespacing=1.4, **_SOFT)


_BACK: style.Looks = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}


def _draw_edges(axes: Axes, drawn: _Drawn) -> None:
    pairs = [(parent, child) for parent, row in drawn.children.items() for child in row]
    _draw_paths(axes, drawn, pairs, color=_EDGE, linewidth=0.8)
    _draw_paths(axes, drawn, drawn.other_edges, color="#D55E00", linewidth=0.6, linestyle=(0, (3, 2)))


def _draw_paths(axes: Axes, drawn: _Drawn, pairs: Sequence[tuple[int, int]], **looks: object) -> None:
    """All edges as one path, which keeps the text of the figure short."""
    if not pairs:
        return
    points = [point for parent, child in pairs for point in _bend(drawn, parent, child)]
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4] * len(pairs)
    axes.add_patch(PathPatch(Path(points, codes), fill=False, zorder=1, **looks))


def _bend(drawn: _Drawn, parent: int, child: int) -> list[Point]:
    """A curve that leaves the parent downwards (or outwards) and comes to the child in the same direction."""
    (ax, ay), (bx, by) = drawn.place[parent], drawn.place[child]
    if not drawn.radial:
        return [(ax, ay), (ax, (ay + by) / 2), (bx, (ay + by) / 2), (bx, by)]
    inner, outer = max(drawn.depth[parent], 0), max(drawn.depth[child], 1)
    middle = (inner + outer) / 2
    start = (ax / inner * middle, ay / inner * middle) if inner else (ax, ay)
    return [(ax, ay), start, (bx / outer * middle, by / outer * middle), (bx, by)]


def _draw_nodes(axes: Axes, drawn: _Drawn, size: float) -> None:
    inner = [node for node, row in drawn.children.items() if row and node != drawn.root]
    leaves = [node for node, row in drawn.children.items() if not row and node != drawn.root]
    for nodes, kind in ((leaves, _LEAF_MARK), (inner, _INNER_MARK), ([drawn.root], _ROOT_MARK)):
        grown = size * (1.7 if kind is _ROOT_MARK and size < 10 else 1.0)
        xs, ys = [drawn.place[node][0] for node in nodes], [drawn.place[node][1] for node in nodes]
        axes.plot(xs, ys, **kind, markersize=grown, clip_on=False)


_LEAF_MARK: style.Looks = {
    "linestyle": "none",
    "marker": "o",
    "color": _LEAF,
    "markeredgecolor": "white",
    "markeredgewidth": 0.3,
}
_INNER_MARK = _LEAF_MARK | {"marker": "s", "color": _INNER, "zorder": 3}
_ROOT_MARK = _LEAF_MARK | {"marker": "D", "color": "#D55E00", "zorder": 4}


def _handles(drawn: Sequence[_Drawn]) -> list[Artist]:
    names = (("root", _ROOT_MARK), ("passes messages on", _INNER_MARK), ("leaf", _LEAF_MARK))
    handles: list[Artist] = [Line2D([], [], label=name, markersize=7, **kind) for name, kind in names]
    if any(each.other_edges for each in drawn):
        handles.append(Line2D([], [], color="#D55E00", linewidth=0.8, linestyle=(0, (3, 2)), label="further parent"))
    return handles if drawn else []
