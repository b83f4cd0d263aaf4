"""The shape of a dissemination tree, from what each process says about its parent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class TreeShape(NamedTuple):
    depth_max: int  # the root has depth 0
    depth_mean: float | None  # of all but the root
    degree_max: int  # children
    leaf_share: float  # of the processes in the tree, those without children
    orphans: int  # processes without a way to the root


def shape(root: int, parents: Mapping[int, int | None]) -> TreeShape:
    """`parents` holds every process that should be in the tree."""
    children: dict[int, list[int]] = {}
    for node, parent in parents.items():
        if parent is not None and node != root:
            children.setdefault(parent, []).append(node)
    depths = _depths(root, children) if root in parents else {}
    below = [depth for depth in depths.values() if depth]
    degrees = [len(children.get(node, ())) for node in depths]
    return TreeShape(
        depth_max=max(below, default=0),
        depth_mean=sum(below) / len(below) if below else None,
        degree_max=max(degrees, default=0),
        leaf_share=degrees.count(0) / len(degrees) if degrees else 0.0,
        orphans=len(parents) - len(depths),
    )


def _depths(root: int, children: Mapping[int, list[int]]) -> dict[int, int]:
    """Of all that can be reached: each has one parent, so no process is met twice."""
    depths, level, depth = {root: 0}, [root], 0
    while level:
        depth += 1
        level = [child for node in level for child in children.get(node, ())]
        depths.update(dict.fromkeys(level, depth))
    return depths
