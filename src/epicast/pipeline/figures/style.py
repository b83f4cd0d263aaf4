"""How every figure looks: colours, marks, sizes and the way numbers are written.

Curves and bars differ in colour and in a second thing (dashes and markers, or hatching), so that they can be told apart
by those who see colours differently and on a page printed in grey.
"""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

HALF_IN, WIDE_IN = 5.0, 10.2  # widths of a figure: beside another one, and alone
HEIGHT_IN = 3.2
POINTS_PER_IN = 72

INK, SOFT_INK, FAINT = "#1f2933", "#52606d", "#d9dee4"
# Okabe and Ito's palette without its yellow, which vanishes on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)))
Looks = dict[str, Any]
"""Arguments of matplotlib that say how something looks."""
MINUS, UNKNOWN = "\N{MINUS SIGN}", "\N{EN DASH}"

# Letters that matplotlib's font lacks are measured as boxes. The page's fonts have them, so this is nobody's concern.
MISSING_LETTERS = "Glyph .* missing"
NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # what no XML may hold
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")

_FONT = (
    "DejaVu Sans"  # comes with matplotlib, so that sizes are the same on every machine; browsers' fonts are narrower
)
_SETTINGS: Looks = {
    "axes.axisbelow": True,
    "axes.edgecolor": SOFT_INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelpad": 6,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "axes.unicode_minus": True,
    "errorbar.capsize": 3,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.facecolor": "none",
    "font.family": [_FONT],
    "font.size": 10,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.9,
    "legend.columnspacing": 1.4,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "lines.linewidth": 1.7,
    "lines.markersize": 5,
    "svg.fonttype": "none",
    "svg.hashsalt": "epicast",
    "text.color": INK,
    "text.parse_math": False,  # a label is text, whatever stands in it
    "xtick.color": SOFT_INK,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 9.5,
    "ytick.color": SOFT_INK,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 9.5,
}


class Look(NamedTuple):
    """What the n-th curve or bar looks like."""

    colour: str
    marker: str
    dashes: Any
    hatch: str


def look(number: int) -> Look:
    """The counts of colours and of dashes share no divisor: 35 curves differ before two look alike."""
    return Look(
        PALETTE[number % len(PALETTE)],
        MARKERS[number % len(MARKERS)],
        DASHES[number % len(DASHES)],
        HATCHES[number % len(HATCHES)],
    )


@contextmanager
def applied() -> Iterator[None]:
    """Our settings on top of matplotlib's own, whatever the user's or another library's are. Also a decorator."""
    own: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith(_NOT_OURS)}
    with matplotlib.rc_context(own | _SETTINGS):
        yield


_NOT_OURS = ("backend", "interactive", "toolbar", "tk.", "webagg.", "macosx.", "docstring.", "date.epoch", "timezone")


def new_figure(description: str, *, wide: bool = False, height_in: float = HEIGHT_IN) -> Figure:
    """The description is what a reader who cannot see the figure is told."""
    figure = Figure(figsize=(WIDE_IN if wide else HALF_IN, height_in), layout="constrained")
    figure.set_label(description)
    return figure


def new_axes(figure: Figure, x_label: str, y_label: str) -> Axes:
    axes = figure.subplots()
    axes.set_xlabel(shortened(x_label, _letters(figure.get_figwidth())))
    axes.set_ylabel(shortened(y_label, _letters(figure.get_figheight())))
    return axes


def _letters(length_in: float) -> int:
    """How many letters of a label have room along an axis of a figure so long."""
    return int((length_in - 0.8) * POINTS_PER_IN / 5.5)


def nothing_measured(axes: Axes) -> None:
    """Say so in words: empty axes look like a mistake of the page."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center", va="center", color=SOFT_INK)


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Above the axes, where it hides no data, in as many columns as fit. Further rows make the figure higher."""
    if not handles:
        return
    for handle in handles:
        handle.set_label(shortened(str(handle.get_label()), 70))
    columns = _columns([str(handle.get_label()) for handle in handles], figure.get_figwidth())
    grow(figure, (math.ceil(len(handles) / columns) - 1) * 0.19)
    figure.legend(handles=_by_row(handles, columns), loc="outside upper left", ncols=columns)


def _columns(labels: Sequence[str], width_in: float) -> int:
    room = width_in * POINTS_PER_IN - 16
    widths = [text_points(label, 9.5) + 45 for label in labels]  # with its handle and what parts it from the next
    fitting = (count for count in range(len(labels), 1, -1) if _row_points(widths, count) <= room)
    return next(fitting, 1)


def _row_points(widths: Sequence[float], columns: int) -> float:
    """A column is as wide as the widest of its labels."""
    return sum(max(widths[column::columns]) for column in range(columns))


def _by_row(handles: Sequence[Artist], columns: int) -> list[Artist]:
    """matplotlib fills columns; readers go along rows."""
    rows = math.ceil(len(handles) / columns)
    full = len(handles) - columns * (rows - 1)  # columns that reach into the last row
    places = [column + row * columns for column in range(columns) for row in range(rows if column < full else rows - 1)]
    return [handles[place] for place in places]


def published_handle() -> Line2D:
    return Line2D([], [], label="published", **PUBLISHED)


PUBLISHED: Looks = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 1.3,
    "zorder": 5,
}


def grow(figure: Figure, more_in: float) -> None:
    figure.set_figheight(figure.get_figheight() + more_in)


def name_places(
    figure: Figure, axes: Axes, places: Sequence[float], labels: Sequence[str], margins_in: float = 0.9
) -> None:
    """Labels along x; at an angle where they would run into each other."""
    axes.set_xticks(list(places))
    labels = [shortened(label, 40) for label in labels]
    longest = max((text_points(label, 9.5) for label in labels), default=0.0)
    if longest <= (figure.get_figwidth() - margins_in) * POINTS_PER_IN / max(len(labels), 1) - 6:
        axes.set_xticklabels(labels)
    else:
        axes.set_xticklabels(labels, rotation=40, ha="right", rotation_mode="anchor")
        grow(figure, max(0.0, longest * math.sin(math.radians(40)) / POINTS_PER_IN - 0.5))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def number_axis(axis: Axis, *, log: bool = False) -> None:
    """Plain numbers as people write them. A log axis that spans little gets marks between the powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axis.set_minor_formatter(NullFormatter())
    if not log:
        axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        return
    low, high = axis.get_view_interval()
    narrow = low > 0 and high / low < 200
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
    axis.set_minor_locator(NullLocator() if narrow else LogLocator(subs=tuple(range(2, 10)), numticks=12))


def mark_values(axis: Axis, places: Sequence[float], *, log: bool = False) -> None:
    """Marks at the values that were measured, where these are few and stand well apart."""
    distinct = sorted({place for place in places if math.isfinite(place) and (place > 0 or not log)})
    along = [math.log(place) for place in distinct] if log else distinct
    if 1 < len(distinct) <= 9 and min(map(operator.sub, along[1:], along)) >= (along[-1] - along[0]) / 14:
        axis.set_major_locator(FixedLocator(distinct))
        axis.set_minor_locator(NullLocator())


def tick(value: float) -> str:
    """1,500 and 2.5 M, never 1.5e3."""
    for limit, suffix in ((1e9, " G"), (1e6, " M")):
        if abs(value) >= limit:
            return f"{value / limit:,.6g}{suffix}".replace("-", MINUS)
    return f"{value:,.10g}".replace("-", MINUS) if abs(value) > 1e-12 else "0"


def number(value: float) -> str:
    """Three digits that count, for numbers written into a figure."""
    if not math.isfinite(value):
        return UNKNOWN
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", MINUS)


def shortened(text: str, limit: int) -> str:
    """On one line, and not longer than there is room."""
    line = " ".join(NOT_TEXT.sub("\ufffd", text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


@lru_cache(maxsize=4096)
def text_points(text: str, size: float) -> float:
    """How wide the text is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=MISSING_LETTERS)
        width, _, _ = text_to_path.get_text_width_height_descent(
            text, FontProperties(family=_FONT, size=size), ismath=False
        )
    return float(width)


def tinted(colour: str, share: float) -> str:
    """The colour mixed with white: 1 is the colour itself, 0 is white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def listed(names: Sequence[str]) -> str:
    return ", ".join(name for name in names if name)
