"""A quantity over two parameters: shaded cells with the numbers written in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from epicast.pipeline.figures import style

# From light to dark in one hue: in grey print it is still an order.
SCALE = LinearSegmentedColormap.from_list("epicast", ["#f3f7fb", "#bcd6ea", "#6aa6d0", "#2272ad", "#0b3f6e"], N=40)
_CELL_IN = 0.62  # the least width of a cell in a figure that stands beside another one


@style.applied()
def heat_map(
    x_labels: Sequence[str],
    y_labels: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    x_label: str = "",
    y_label: str = "",
    value_label: str = "",
    written: Callable[[float], str] = style.number,
) -> Figure:
    """`values[row][column]`, the first row on top. None or not a number: nothing was measured there."""
    cells = np.array([[np.nan if value is None else value for value in row] for row in values], dtype=float)
    figure = _sized(len(x_labels), len(y_labels), f"{value_label or 'values'} by {x_label} and {y_label}")
    axes = style.new_axes(figure, x_label, y_label)
    if not cells.size or np.isnan(cells).all():
        style.nothing_measured(axes)
        return figure
    norm = Normalize(float(np.nanmin(cells)), float(np.nanmax(cells)))
    axes.set_facecolor("#eceff2")
    mesh = axes.pcolormesh(np.ma.masked_invalid(cells), cmap=SCALE, norm=norm, edgecolors="white", linewidth=1.5)
    _write_cells(axes, cells, norm, written, _text_size(len(x_labels), figure.get_figwidth()))
    _name_cells(figure, axes, x_labels, y_labels)
    bar = figure.colorbar(
        mesh,
        ax=axes,
        fraction=0.035,
        pad=0.02,
        aspect=10 * figure.get_figheight(),
        label=style.shortened(value_label, 60),
    )
    bar.outline.set_visible(False)
    if bar.solids is not None:
        bar.solids.set_edgecolor("face")  # no seams between its steps
    style.number_axis(bar.ax.yaxis)
    return figure


def _sized(columns: int, rows: int, description: str) -> Figure:
    wide = columns * _CELL_IN > style.HALF_IN - 1.8
    return style.new_figure(description, wide=wide, height_in=min(10.0, max(2.4, 1.1 + 0.42 * rows)))


def _text_size(columns: int, width_in: float) -> float:
    cell = (width_in - 1.8) * style.POINTS_PER_IN / max(columns, 1)
    return max(5.0, min(9.5, cell / 3.4))


def _write_cells(axes: Axes, cells: np.ndarray, norm: Normalize, written: Callable[[float], str], size: float) -> None:
    for (row, column), value in np.ndenumerate(cells):
        known = not np.isnan(value)
        dark = known and norm(value) > 0.55
        text = written(float(value)) if known else style.UNKNOWN
        colour = "white" if dark else style.INK
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=size, color=colour)


def _name_cells(figure: Figure, axes: Axes, x_labels: Sequence[str], y_labels: Sequence[str]) -> None:
    style.name_places(figure, axes, [place + 0.5 for place in range(len(x_labels))], x_labels, margins_in=1.9)
    axes.set_yticks([place + 0.5 for place in range(len(y_labels))], [style.shortened(label, 22) for label in y_labels])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
