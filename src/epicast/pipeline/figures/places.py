"""Where things stand side by side along x: a place for each label, and within it one for each group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epicast.pipeline.figures import style

Published = Mapping[str, Mapping[str, float]]
"""What a document printed: group, x label, value."""

_WIDE_FROM = 24  # bars or boxes from which on a figure needs the whole width of the page


@dataclass(frozen=True)
class Places:
    groups: tuple[str, ...]
    xs: tuple[str, ...]
    published: tuple[tuple[str, str, float], ...] = ()

    @classmethod
    def of(cls, groups: Mapping[str, Sequence[str]], published: Published | None) -> Places:
        """Labels in the order in which they first come. What was published for none of them is left out."""
        xs = tuple(dict.fromkeys(x for row in groups.values() for x in row))
        rows = ((group, x, value) for group, row in (published or {}).items() for x, value in row.items())
        known = [row for row in rows if row[0] in groups and row[1] in xs and math.isfinite(row[2])]
        return cls(tuple(groups), xs, tuple(known))

    @property
    def count(self) -> int:
        return len(self.groups) * len(self.xs)

    @property
    def wide(self) -> bool:
        """Many bars, or names that would take more than twice the room that a figure beside another one has."""
        names = sum(style.text_points(style.shortened(x, 40), 9.5) for x in self.xs)
        return self.count >= _WIDE_FROM or names > 2 * style.HALF_IN * style.POINTS_PER_IN

    @property
    def step(self) -> float:
        """From one group's place to the next; the distance between two labels is 1."""
        return 0.84 / max(len(self.groups), 2)

    @property
    def width(self) -> float:
        """Of a bar: narrower where a published value needs room beside it."""
        return self.step * (0.6 if self.published else 0.92)

    def at(self, group: str, x: str) -> float:
        return self._middle(group, x) - (self.step * 0.16 if self.published else 0.0)

    def beside(self, group: str, x: str) -> float:
        return self._middle(group, x) + self.step * 0.31

    def _middle(self, group: str, x: str) -> float:
        middle = (len(self.groups) - 1) / 2
        return self.xs.index(x) + (self.groups.index(group) - middle) * self.step

    def finish(self, figure: Figure, axes: Axes, *, log_y: bool = False) -> None:
        style.name_places(figure, axes, range(len(self.xs)), self.xs)
        axes.set_xlim(-0.6, len(self.xs) - 0.4)
        style.number_axis(axes.yaxis, log=log_y)


def draw_published(axes: Axes, places: Places) -> list[Line2D]:
    """Beside what was measured, so that neither hides the other. Returns what the legend shows."""
    if not places.published:
        return []
    xs = [places.beside(group, x) for group, x, _ in places.published]
    axes.plot(xs, [value for _, _, value in places.published], **style.PUBLISHED)
    return [style.published_handle()]


def named_groups(handles: Sequence[Artist], published: Sequence[Artist]) -> list[Artist]:
    """For the legend. A single group needs a name only where it must be told from what was published."""
    if len(handles) == 1 and published:
        handles[0].set_label("measured")
    return [*handles, *published] if published or len(handles) > 1 else []
