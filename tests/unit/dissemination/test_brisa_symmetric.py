"""Symmetric deactivation: a duplicate of the message that built the tree ends a link in both directions (E-B2)."""

import pytest

from epicast.core.recording import Send
from epicast.dissemination.brisa_messages import Activate, Data, Deactivate
from tests.support.neighbours import Tree, data

FLOW = (0, 0)


def built(**settings: object) -> Tree:
    """Attached to 1; 2 and 3 have said nothing yet."""
    tree = Tree(**settings)  # type: ignore[arg-type]
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.take()
    return tree


def next_targets(tree: Tree) -> list[object]:
    tree.take()
    seq = tree.flow().windows[0].next
    tree.brisa.on_data(1, data(seq, (0, 1)))
    return [effect.to for effect in tree.env.sent(Data)]


def test_a_duplicate_of_the_first_message_ends_its_link_both_ways() -> None:
    tree = built()
    tree.brisa.on_data(2, data(0, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW, mutual=True))]
    assert next_targets(tree) == [3]


def test_without_the_optimisation_only_the_way_in_ends() -> None:
    tree = built(symmetric=False)
    tree.brisa.on_data(2, data(0, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW, mutual=False))]
    assert next_targets(tree) == [2, 3]


def test_it_needs_the_first_come_strategy() -> None:
    tree = built(strategy="delay-aware")
    tree.brisa.on_data(2, data(0, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW, mutual=False))]


def test_it_is_limited_to_the_message_that_built_the_tree() -> None:
    tree = built()
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.take()
    tree.brisa.on_data(2, data(1, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW, mutual=False))]


def test_it_ends_with_the_first_repair() -> None:
    tree = built()
    tree.hears(2, (0, 2))
    tree.brisa.neighbour_down(1, True)
    tree.told(2, (0, 2))
    assert tree.flow().parent == 2
    tree.take()
    tree.brisa.on_data(3, data(0, (0, 3)))
    assert tree.take() == [Send(3, Deactivate(FLOW, mutual=False))]


def test_it_needs_a_tree_that_emerged_from_a_flood() -> None:
    """Who had heard of the flow before its first message came cannot conclude anything from a duplicate."""
    tree = Tree()
    tree.hears(1, ())
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.take()
    tree.brisa.on_data(2, data(0, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW, mutual=False))]


def test_a_mutual_deactivation_ends_both_ways_at_the_other_side_too() -> None:
    tree = built()
    tree.brisa.on_deactivate(2, Deactivate(FLOW, mutual=True))
    assert tree.take() == []
    assert 2 not in tree.flow().in_active
    assert next_targets(tree) == [3]


@pytest.mark.parametrize("mutual", [True, False])
def test_a_parent_that_stops_sending_is_asked_to_go_on(mutual: bool) -> None:
    """Only a mutual deactivation says that it stopped; the other kind is about our copies."""
    tree = built()
    tree.brisa.on_deactivate(1, Deactivate(FLOW, mutual))
    assert tree.take() == ([Send(1, Activate(FLOW))] if mutual else [])
    assert tree.flow().parent == 1
    assert 1 in tree.flow().in_active


def test_a_child_that_asks_to_go_on_gets_the_next_message() -> None:
    tree = built()
    tree.brisa.on_data(2, data(0, (0, 2)))
    tree.brisa.on_activate(2, Activate(FLOW))
    assert sorted(next_targets(tree)) == [2, 3]  # type: ignore[type-var]
