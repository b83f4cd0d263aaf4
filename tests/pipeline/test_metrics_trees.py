"""Shapes of trees and repairs, in histories whose numbers can be told by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from epicast.core.ids import NOBODY
from epicast.core.records import Kind, Level
from epicast.pipeline.metrics.tree_shape import depths_below, shapes
from tests.pipeline.histories import History
from tests.pipeline.measured import histogram, measured, series


def both_ways(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
    return [*pairs, *((b, a) for a, b in pairs)]


def test_depth_and_degree_of_a_small_tree(tmp_path: Path) -> None:
    """0 is above 1 and 2, 1 above 3, 3 above 4."""
    h = History(5, level=Level.DELIVERIES)
    h.neighbours(*both_ways((0, 1), (0, 2), (1, 3), (3, 4), (2, 4)))
    h.picture({1: 0, 2: 0, 3: 1, 4: 3})
    found = measured(h.save(tmp_path))
    assert found.metrics["trees"] == 1
    assert (found.metrics["tree_depth_max"], found.metrics["tree_depth_mean"]) == (3, 7 / 4)
    assert histogram(found, "depth") == {1: 2, 2: 1, 3: 1}
    assert histogram(found, "out_degree") == {0: 2, 1: 2, 2: 1}
    assert (found.metrics["tree_out_degree_max"], found.metrics["tree_out_degree_mean"]) == (2, 4 / 3)
    assert found.metrics["tree_leaf_share"] == 2 / 5
    assert found.metrics["tree_orphans"] == 0
    assert found.metrics["tree_stretch_mean"] == pytest.approx((1 + 1 + 1 + 3 / 2) / 4)  # 4 is two links from 0


def test_whoever_has_no_way_to_the_root_is_an_orphan(tmp_path: Path) -> None:
    """3 has lost its parent, 4 hangs on it; 5's parent is gone; 6 and 7 are each other's."""
    h = History(8)
    h.crash(2)
    h.picture({1: 0, 4: 3, 5: 2, 6: 7, 7: 6})
    found = measured(h.save(tmp_path)).metrics
    assert found["tree_orphans"] == 5
    assert found["tree_depth_max"] == 1
    assert found["tree_leaf_share"] == 1 / 2


def test_only_the_last_picture_counts(tmp_path: Path) -> None:
    h = History(3)
    h.picture({1: 0, 2: 1})
    h.wait(1)
    h.picture({1: 0, 2: 0})
    assert measured(h.save(tmp_path)).metrics["tree_depth_max"] == 1


def test_several_trees_are_taken_together(tmp_path: Path) -> None:
    """BR-9 and BR-10: leaves and children over all trees."""
    h = History(3)
    h.picture({1: 0, 2: 0}, flow="0/0")
    h.picture({0: 1, 2: 0}, flow="1/0")
    found = measured(h.save(tmp_path))
    assert found.metrics["trees"] == 2
    assert histogram(found, "depth") == {1: 3, 2: 1}
    assert histogram(found, "children") == {3: 1, 1: 1, 0: 1}
    assert histogram(found, "leaf_in_trees") == {0: 1, 1: 1, 2: 1}
    assert found.metrics["childless_share"] == pytest.approx(1 / 3)


def test_without_its_root_a_tree_has_only_orphans(tmp_path: Path) -> None:
    h = History(3)
    h.crash(0)
    h.picture({1: 0, 2: 1})
    found = measured(h.save(tmp_path)).metrics
    assert found["tree_orphans"] == 2
    assert "tree_depth_max" not in found


def test_with_several_parents_depth_is_the_longest_way() -> None:
    """BR-2."""
    assert depths_below(0, 4, [(0, 1), (0, 2), (1, 2), (2, 3), (0, 3)]) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_with_several_parents_in_a_cycle_depth_is_the_shortest_way() -> None:
    assert depths_below(0, 4, [(0, 1), (1, 2), (2, 1), (2, 3)]) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_ways_of_the_overlay_have_a_direction() -> None:
    """Messages go from a process to those in its view; 2 is out of reach but in the tree."""
    found = shapes([0, 1, 2], {"0/0": 0}, {"0/0": [(1, 0), (2, 1)]}, [(0, 1, -1), (2, 1, -1)])
    assert found.stretch == [1.0]
    assert found.depth == {1: 1, 2: 1}


def test_the_delay_of_a_way_is_the_sum_of_its_round_trips() -> None:
    """BR-5. 2 does not know how far its parent is, so nobody knows about 2 and 3."""
    parents = [(1, 0), (4, 1), (2, 0), (3, 2)]
    views = [(1, 0, 10), (0, 1, 99), (4, 1, 5), (2, 0, -1), (3, 2, 7)]
    found = shapes(range(5), {"0/0": 0}, {"0/0": parents}, views)
    assert sorted(found.rtt_us) == [10, 15]


# Parents lost and found


def lose(h: History, node: int, delay_s: float, sort: str = "", parent: int = 0) -> None:
    h.parent(node, NOBODY)
    h.now_us += round(delay_s * 1e6) - 2000
    if sort:
        h.add(Kind.REPAIR, node, peer=parent, source=0, seq=0, detail=sort)
        h.now_us -= 1000
    h.add(Kind.PARENT, node, peer=parent, source=0, seq=0)


def test_repairs_and_how_long_they_took(tmp_path: Path) -> None:
    """BR-8, BR-17."""
    h = History(5, level=Level.DELIVERIES)
    h.now_us = 999_000
    post = h.publish(0)
    for node in (1, 2, 3, 4):
        h.parent(node, 0)
    lose(h, 1, 0.5, "soft", parent=2)
    lose(h, 2, 1.5, "soft")
    lose(h, 3, 4.0, "hard")
    h.parent(4, NOBODY)  # for good
    h.now_us = 30_999_000
    h.deliver(1, post)
    found = measured(h.save(tmp_path))
    metrics = found.metrics
    assert (metrics["parents_lost"], metrics["orphans"]) == (4, 4)
    assert metrics["parents_lost_per_minute"] == metrics["orphans_per_minute"] == pytest.approx(8.0)
    assert (metrics["soft_repairs"], metrics["hard_repairs"]) == (2, 1)
    assert metrics["soft_repair_share"] + metrics["hard_repair_share"] == pytest.approx(1.0)
    assert metrics["parent_changes"] == 4 + 3
    assert histogram(found, "repair_delay_ms") == {499.0: 1, 1499.0: 1, 3999.0: 1}
    assert (metrics["soft_repair_delay_ms_max"], metrics["hard_repair_delay_ms_p50"]) == (1499.0, 3999.0)
    assert sum(series(found, "parents_lost_per_minute").values()) == pytest.approx(4 * 60 / 0.2)


def test_a_better_parent_is_no_loss(tmp_path: Path) -> None:
    h = History(3)
    h.publish(0)
    h.parent(1, 0)
    h.parent(1, 2)
    found = measured(h.save(tmp_path)).metrics
    assert (found["parents_lost"], found["orphans"], found["parent_changes"]) == (0, 0, 2)
    assert "repair_delay_ms_mean" not in found
    assert "soft_repair_share" not in found


def test_a_stack_without_trees_has_no_parents_to_lose(tmp_path: Path) -> None:
    h = History(2)
    h.deliver(1, h.publish(0))
    found = measured(h.save(tmp_path))
    assert not [name for name in found.metrics if "parent" in name or "tree" in name or "repair" in name]
    assert not series(found, "parents_lost_per_minute")
