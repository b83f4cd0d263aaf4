"""Places for the nodes of a tree, so that no two subtrees overlap (Reingold and Tilford, 1981).

Each subtree has an outline: how far it reaches to the left and to the right at each depth. Children's outlines are
pushed together until they nearly touch, and the parent stands in the middle above them. No recursion: a tree may be a
chain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
Gap = Callable[[int], float]
"""The least distance between two neighbours, by their depth."""


@dataclass
class _Outline:
    """By depth below its top, relative to the top's own place."""

    left: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)


def children_of(edges: Sequence[tuple[N, N]], root: N) -> dict[N, list[N]]:
    """Breadth first from the root, along edges (parent, child): each node once, at its least depth. Edges that lead to
    a node again, and nodes that the root does not reach, are left out."""
    known: dict[N, list[N]] = {}
    for parent, child in edges:
        known.setdefault(parent, []).append(child)
    tree: dict[N, list[N]] = {root: []}
    level = [root]
    while level:
        level = [
            _adopt(tree, parent, child) for parent in level for child in known.get(parent, ()) if child not in tree
        ]
    return tree


def _adopt(tree: dict[N, list[N]], parent: N, child: N) -> N:
    tree[parent].append(child)
    tree[child] = []
    return child


def depths(tree: Mapping[N, Sequence[N]], root: N) -> dict[N, int]:
    """In breadth-first order."""
    found = {root: 0}
    order = [root]
    for node in order:
        for child in tree[node]:
            found[child] = found[node] + 1
            order.append(child)
    return found


def tidy(tree: Mapping[N, Sequence[N]], root: N, gap: Gap) -> dict[N, float]:
    """Where each node stands along the level of its depth; the least place is 0."""
    depth = depths(tree, root)
    outlines: dict[N, _Outline] = {}
    offset: dict[N, float] = {root: 0.0}
    for node in reversed(depth):
        outlines[node] = _joined([outlines.pop(child) for child in tree[node]], tree[node], offset, depth[node], gap)
    place = {root: 0.0}
    for node in depth:
        for child in tree[node]:
            place[child] = place[node] + offset[child]
    least = min(place.values())
    return {node: at - least for node, at in place.items()}


def _joined(
    outlines: Sequence[_Outline], children: Sequence[N], offset: dict[N, float], depth: int, gap: Gap
) -> _Outline:
    """Sets each child's offset from its parent and gives the outline of all."""
    if not children:
        return _Outline([0.0], [0.0])
    together = _Outline()
    at: list[float] = []
    for outline in outlines:
        at.append(_room(together, outline, depth + 1, gap))
        _add(together, outline, at[-1])
    middle = (at[0] + at[-1]) / 2
    for child, place in zip(children, at, strict=True):
        offset[child] = place - middle
    return _Outline([0.0, *(x - middle for x in together.left)], [0.0, *(x - middle for x in together.right)])


def _room(together: _Outline, outline: _Outline, depth: int, gap: Gap) -> float:
    """How far to the right the outline must go to stand clear of those before it."""
    pairs = enumerate(zip(together.right, outline.left, strict=False), depth)
    return max((right + gap(level) - left for level, (right, left) in pairs), default=0.0)


def _add(together: _Outline, outline: _Outline, place: float) -> None:
    for level, (left, right) in enumerate(zip(outline.left, outline.right, strict=True)):
        if level < len(together.left):
            together.left[level] = min(together.left[level], left + place)
            together.right[level] = max(together.right[level], right + place)
        else:
            together.left.append(left + place)
            together.right.append(right + place)
