"""Which links carry payload: new ones only on request, and what neighbours tell puts right what was lost or crossed."""

import pytest

from epicast.core.recording import Send
from epicast.dissemination.brisa_messages import UPWARD, Activate, Data, Deactivate, Whereabouts
from tests.support.neighbours import Tree, data, exchange

FLOW = (0, 0)


def upward(seq: int) -> Data:
    return data(seq, (), source=9, flags=UPWARD, hops=1)


def targets(tree: Tree) -> set[object]:
    return set(tree.flow().targets())


# New links


def test_a_new_link_between_two_attached_processes_carries_nothing() -> None:
    one = Tree(me=5, neighbours=(1,)).attached(parent=1, path=(0, 1))
    two = Tree(me=6, neighbours=(2,)).attached(parent=2, path=(0, 2))
    one.brisa.neighbour_up(6)
    two.brisa.neighbour_up(5)
    exchange({5: one.brisa, 6: two.brisa})
    one.brisa.on_data(1, data(1, (0, 1)))
    two.brisa.on_data(2, upward(0))
    assert one.env.sent(Data) == []
    assert [sent.to for sent in two.env.sent(Data)] == []
    assert (one.flow().parent, two.flow().parent) == (1, 2)


def test_a_newcomer_asks_for_copies_of_the_flows_that_it_is_told_of() -> None:
    old = Tree(me=5, neighbours=(1,)).attached(parent=1, path=(0, 1))
    new = Tree(me=6, neighbours=())
    old.brisa.neighbour_up(6)
    new.brisa.neighbour_up(5)
    exchange({5: old.brisa, 6: new.brisa})
    assert (new.flow().parent, new.flow().path) == (5, (0, 1, 5, 6))
    assert targets(old) == {6}


def test_two_that_found_no_place_are_told_when_one_of_them_has() -> None:
    tree = Tree(neighbours=(1, 2)).attached()
    tree.brisa.neighbour_down(1, True)  # nobody will do
    tree.brisa.neighbour_up(6)
    tree.take()
    tree.hears(2, (0, 2))
    tree.told(2, (0, 2))
    assert [sent.to for sent in tree.env.sent(Whereabouts)] == [6]


def test_who_was_told_nothing_of_a_flow_without_a_message_is_told_with_the_first_one() -> None:
    tree = Tree(neighbours=(1,))
    tree.hears(1, (0, 1), last=-1)
    tree.told(1, (0, 1), last=-1)
    tree.brisa.neighbour_up(6)
    assert tree.env.sent(Whereabouts) == []
    tree.take()
    tree.brisa.on_data(1, data(0, (0, 1)))
    assert [sent.to for sent in tree.env.sent(Whereabouts)] == [6]
    assert tree.env.sent(Data) == []


# What a neighbour tells of its place


@pytest.mark.parametrize("how", ["keep-alive", "message"])
def test_a_neighbour_that_is_attached_elsewhere_gets_no_more_copies(how: str) -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    assert targets(tree) == {2, 3}
    (tree.hears if how == "keep-alive" else tree.told)(2, (0, 9, 2))  # type: ignore[operator]
    assert targets(tree) == {3}


def test_an_upward_message_does_not_cross_a_link_to_a_neighbour_that_is_attached_elsewhere() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.hears(2, (0, 9, 2))
    tree.hears(3, (0, 1, 5, 3))
    tree.take()
    tree.brisa.on_data(3, upward(0))
    assert [sent.to for sent in tree.env.sent(Data)] == [1]


@pytest.mark.parametrize("told", [{"path": ()}, {"path": (0, 9, 2), "pending": True}, {"path": (0, 1, 5, 2)}])
def test_a_neighbour_that_may_need_our_copies_goes_on_getting_them(told: dict[str, object]) -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.hears(2, **told)  # type: ignore[arg-type]
    assert targets(tree) == {2, 3}


def test_a_child_whose_request_was_lost_gets_copies_again() -> None:
    """It tells a path that leads through us: it takes us for its parent."""
    tree = Tree().attached()
    assert targets(tree) == set()
    tree.hears(2, (0, 1, 5, 2))
    assert targets(tree) == {2}


def test_a_request_is_not_undone_by_what_was_told_before_it() -> None:
    """E-B2: the keep-alive came first, but is read only once a period."""
    tree = Tree().attached()
    tree.env.advance(1_000_000)
    tree.brisa.on_activate(2, Activate(FLOW))
    told = tree.brisa.flows[FLOW].known  # what it says about 2 is not believed any more
    assert told[2].path == ()
    stale = Tree(me=2, neighbours=(9,)).attached(parent=9, path=(0, 9)).brisa.positions()
    tree.brisa.heard(2, stale, 500_000)
    assert targets(tree) == {2}


def test_a_refusal_is_not_undone_by_what_was_told_before_it() -> None:
    tree = Tree().attached()
    tree.brisa.on_activate(2, Activate(FLOW))
    tree.env.advance(1_000_000)
    child = Tree(me=2, neighbours=(5,)).attached(parent=5, path=(0, 1, 5)).brisa.positions()
    tree.brisa.on_deactivate(2, Deactivate(FLOW))
    tree.brisa.heard(2, child, 500_000)
    assert targets(tree) == set()
    tree.brisa.heard(2, child, 1_500_000)  # told after the refusal, so it means it
    assert targets(tree) == {2}


def test_an_orphan_that_takes_a_parent_for_its_data_says_so() -> None:
    """The sender may be about to hear that we are attached elsewhere."""
    tree = Tree().attached()
    tree.brisa.neighbour_down(1, True)
    tree.take()
    tree.brisa.on_data(3, data(1, (0, 3)))
    assert tree.flow().parent == 3
    assert Send(3, Activate(FLOW)) in tree.take()


# Copies too many of upward messages


def reused() -> Tree:
    """Process 5: parent 1, child 2, and 3 is attached elsewhere but sends copies."""
    tree = Tree().attached()
    tree.brisa.on_activate(2, Activate(FLOW))
    tree.hears(2, (0, 1, 5, 2))
    tree.hears(3, (0, 9, 3))
    tree.brisa.on_data(2, upward(0))
    tree.take()
    return tree


def test_an_upward_copy_from_beside_the_tree_ends_its_link_both_ways() -> None:
    tree = reused()
    assert tree.brisa.on_data(3, upward(0)) is True
    assert tree.take() == [Send(3, Deactivate(FLOW, mutual=True))]
    assert 3 not in tree.flow().out_active


@pytest.mark.parametrize("sender", [1, 2])
def test_an_upward_copy_over_an_edge_of_the_tree_ends_nothing(sender: int) -> None:
    tree = reused()
    assert tree.brisa.on_data(sender, upward(0)) is True
    assert tree.take() == []
    assert targets(tree) == {2}


def test_an_upward_copy_ends_no_link_while_nobody_knows_where_its_sender_stands() -> None:
    tree = reused()
    tree.brisa.on_activate(3, Activate(FLOW))
    tree.take()
    assert tree.brisa.on_data(3, upward(0)) is True
    assert tree.take() == []


def test_an_upward_copy_ends_no_link_of_a_process_without_a_parent() -> None:
    tree = reused()
    tree.brisa.neighbour_down(1, True)
    tree.take()
    assert tree.brisa.on_data(3, upward(0)) is True
    assert tree.env.sent(Deactivate) == []
