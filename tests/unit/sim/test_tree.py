"""The shape of trees, whole and broken."""

from __future__ import annotations

from epicast.sim.tree import TreeShape, shape


def test_a_whole_tree() -> None:
    """0 has the children 1 and 2; 3, 4 and 5 are below 1."""
    assert shape(0, {0: None, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}) == TreeShape(
        depth_max=2, depth_mean=8 / 5, degree_max=3, leaf_share=4 / 6, orphans=0
    )


def test_processes_below_an_orphan_are_orphans_too() -> None:
    assert shape(0, {0: None, 1: 0, 2: None, 3: 2}).orphans == 2


def test_a_cycle_has_no_way_to_the_root() -> None:
    assert shape(0, {0: None, 1: 2, 2: 3, 3: 1, 4: 0}) == TreeShape(1, 1.0, 1, 0.5, 3)


def test_a_parent_that_is_gone_makes_orphans() -> None:
    assert shape(0, {0: None, 1: 7, 2: 0}).orphans == 1


def test_without_its_root_a_tree_is_all_orphans() -> None:
    assert shape(9, {1: 9, 2: 1}) == TreeShape(0, None, 0, 0.0, 2)


def test_a_root_alone() -> None:
    assert shape(0, {0: None}) == TreeShape(0, None, 0, 1.0, 0)
