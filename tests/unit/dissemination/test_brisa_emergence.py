"""How a tree emerges from the first message, and what later messages change about it."""

import pytest

from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_messages import BOOTSTRAP, RECOVERED, Activate, Data, Deactivate
from tests.support.neighbours import STRANGER, Tree, data, position

FLOW = (0, 0)
AGAIN = 500_000  # after so long an unheeded Deactivate is repeated


# The source


def test_the_source_sends_its_first_message_to_everyone() -> None:
    tree = Tree(me=0)
    assert tree.brisa.broadcast("t", b"x") == (0, 0)
    assert tree.take() == [Send(peer, Data(FLOW, 0, 0, 1, (0,), 0, "t", b"x")) for peer in (1, 2, 3)]
    assert tree.got == [(0, 0)]


def test_the_source_numbers_its_messages_and_keeps_its_flow() -> None:
    tree = Tree(me=0)
    assert [tree.brisa.broadcast("t", b"x") for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    assert list(tree.brisa.flows) == [FLOW]


def test_the_source_leaves_out_who_does_not_want_its_copies() -> None:
    tree = Tree(me=0)
    tree.brisa.broadcast("t", b"x")
    tree.brisa.on_deactivate(2, Deactivate(FLOW))
    tree.take()
    tree.brisa.broadcast("t", b"x")
    assert [effect.to for effect in tree.env.sent(Data)] == [1, 3]


def test_the_source_never_takes_a_parent() -> None:
    tree = Tree(me=0)
    tree.brisa.broadcast("t", b"x")
    tree.brisa.on_data(2, data(7, (8, 2)))  # a path that does not come from the source at all
    tree.brisa.heard(2, (position((8, 2)),), tree.env.now_us())
    assert tree.flow().parent is None
    assert tree.flow().path == (0,)


def test_the_source_sends_its_own_messages_away() -> None:
    tree = Tree(me=0)
    tree.brisa.broadcast("t", b"x")
    tree.take()
    assert tree.brisa.on_data(2, data(0, (0, 1, 2))) is True
    assert tree.take() == [Send(2, Deactivate(FLOW))]


def test_a_tree_can_be_built_with_an_empty_message() -> None:
    tree = Tree(me=0)
    assert tree.brisa.bootstrap("t") == FLOW
    assert tree.take() == [Send(peer, Data(FLOW, 0, 0, 1, (0,), BOOTSTRAP, "t", b"")) for peer in (1, 2, 3)]
    assert tree.got == []
    assert tree.brisa.broadcast("t", b"x") == (0, 1)


def test_an_empty_message_builds_the_tree_and_is_not_delivered() -> None:
    tree = Tree()
    tree.brisa.on_data(1, Data(FLOW, 0, 0, 1, (0, 1), BOOTSTRAP, "t", b""))
    assert tree.got == []
    assert tree.flow().parent == 1
    assert [effect.msg for effect in tree.env.sent(Data)] == [Data(FLOW, 0, 0, 2, (0, 1, 5), BOOTSTRAP, "t", b"")] * 2


# The first message


def test_whoever_sends_the_first_message_becomes_the_parent() -> None:
    tree = Tree()
    assert tree.brisa.on_data(1, data(0, (0, 1))) is False
    assert tree.flow().parent == 1
    assert tree.flow().path == (0, 1, 5)
    assert tree.brisa.parents() == {FLOW: 1}
    assert tree.got == [(0, 0)]
    assert tree.env.records == [Record(Kind.PARENT, 1, 0, 0)]


def test_the_first_message_goes_on_to_everyone_but_its_sender() -> None:
    """E-B3; with the path, which now ends with us."""
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    assert tree.take() == [Send(2, data(0, (0, 1, 5))), Send(3, data(0, (0, 1, 5)))]


def test_a_second_copy_of_the_first_message_is_a_duplicate_and_ends_its_link() -> None:
    tree = Tree(symmetric=False)
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.take()
    assert tree.brisa.on_data(2, data(0, (0, 2))) is True
    assert tree.take() == [Send(2, Deactivate(FLOW))]
    assert tree.got == [(0, 0)]
    assert tree.flow().parent == 1


def test_a_second_copy_from_the_parent_ends_nothing() -> None:
    tree = Tree().attached()
    assert tree.brisa.on_data(1, data(0, (0, 1))) is True
    assert tree.take() == []


def test_a_process_that_has_no_use_for_our_copies_gets_no_more() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.brisa.on_deactivate(2, Deactivate(FLOW))
    tree.take()
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == [Send(3, data(1, (0, 1, 5)))]


def test_a_process_without_children_sends_nothing() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == []
    assert tree.got == [(0, 1)]


def test_a_process_that_does_not_want_a_flow_that_we_do_not_know_changes_nothing() -> None:
    tree = Tree()
    tree.brisa.on_deactivate(2, Deactivate((7, 7)))
    assert tree.brisa.flows == {}
    assert tree.take() == []


def test_a_message_from_somebody_who_is_no_neighbour_is_delivered_but_makes_no_parent() -> None:
    tree = Tree()
    assert tree.brisa.on_data(STRANGER, data(0, (0, STRANGER))) is False
    assert tree.got == [(0, 0)]
    assert tree.flow().parent is None


def test_somebody_who_is_no_neighbour_is_not_asked_to_stop() -> None:
    tree = Tree().attached()
    assert tree.brisa.on_data(STRANGER, data(0, (0, STRANGER))) is True
    assert tree.take() == []


def test_a_message_in_our_own_name_that_we_never_published_is_not_delivered() -> None:
    tree = Tree(me=5)
    assert tree.brisa.on_data(1, data(0, (0, 1), source=5)) is True
    assert tree.got == []
    assert tree.take() == []


def test_a_message_that_was_asked_for_again_makes_no_parent() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1), flags=RECOVERED))
    assert tree.got == [(0, 0)]
    assert tree.flow().parent is None


def test_a_message_that_was_asked_for_again_goes_on_as_an_ordinary_one() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.take()
    tree.brisa.on_data(2, data(1, (0, 2), flags=RECOVERED))
    assert [effect.msg.flags for effect in tree.env.sent(Data)] == [0]  # type: ignore[attr-defined]


# Figure 4.5: whoever is below us cannot be our parent


def test_a_copy_whose_path_runs_through_us_ends_its_link() -> None:
    tree = Tree()
    assert tree.brisa.on_data(2, data(0, (0, 5, 9, 2))) is False
    assert tree.flow().parent is None
    assert tree.got == [(0, 0)]
    assert tree.env.sent(Deactivate) == [Send(2, Deactivate(FLOW))]


def test_the_first_copy_from_outside_our_subtree_makes_the_parent() -> None:
    tree = Tree()
    tree.brisa.on_data(2, data(0, (0, 5, 2)))
    tree.brisa.on_data(3, data(0, (0, 3)))
    assert tree.flow().parent == 3


def test_a_path_that_is_too_long_is_taken_for_a_cycle() -> None:
    tree = Tree(path_max=4)
    tree.brisa.on_data(2, data(0, (0, 8, 9, 2)))
    assert tree.flow().parent is None
    tree.brisa.on_data(3, data(0, (0, 9, 3)))
    assert tree.flow().parent == 3


def test_a_process_that_has_lost_its_own_place_is_no_parent() -> None:
    tree = Tree()
    tree.brisa.on_data(2, data(0, ()))
    assert tree.flow().parent is None
    assert tree.got == [(0, 0)]


# Later messages


def test_a_parent_whose_path_changed_changes_ours() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(1, data(1, (0, 9, 1)))
    assert tree.flow().path == (0, 9, 1, 5)


def test_a_link_that_was_faster_once_is_kept_until_the_parent_has_shown_that_it_lives() -> None:
    tree = Tree().attached()
    assert tree.brisa.on_data(2, data(1, (0, 2))) is False
    assert tree.take() == []
    assert tree.brisa.on_data(1, data(1, (0, 1))) is True
    assert tree.take() == [Send(2, Deactivate(FLOW))]
    assert tree.flow().parent == 1


def test_a_link_that_was_faster_once_is_kept_while_the_parent_is_silent() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(2, data(1, (0, 2)))
    tree.brisa.on_data(3, data(1, (0, 3)))
    assert tree.take() == [Send(3, Deactivate(FLOW))]


def test_a_link_that_was_dismissed_is_not_dismissed_with_every_duplicate() -> None:
    tree = Tree().attached()
    tree.brisa.on_data(2, data(1, (0, 2)))
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.take()
    tree.env.advance(AGAIN)
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == []


def test_an_unwanted_link_is_not_ended_twice_at_once() -> None:
    tree = Tree(symmetric=False).attached()
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.brisa.on_data(2, data(0, (0, 2)))
    tree.brisa.on_data(2, data(1, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW))]


def test_an_unwanted_link_that_goes_on_is_ended_again() -> None:
    tree = Tree(symmetric=False).attached()
    tree.brisa.on_data(2, data(0, (0, 2)))
    tree.take()
    tree.env.advance(AGAIN)
    tree.brisa.on_data(2, data(0, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW))]


@pytest.mark.parametrize("path", [(9, 2), (0, 9), (9,)])
def test_a_path_that_does_not_lead_from_the_source_to_its_teller_makes_no_parent(path: tuple[int, ...]) -> None:
    tree = Tree()
    tree.brisa.on_data(2, data(0, path))
    assert tree.flow().parent is None
    tree.hears(2, path)
    assert tree.flow().parent is None


# New neighbours


def test_a_new_neighbour_is_told_where_we_are() -> None:
    tree = Tree().attached()
    tree.brisa.neighbour_up(4)
    [greeting] = tree.take()
    assert isinstance(greeting, Send)
    assert (greeting.to, greeting.msg.position) == (4, position((0, 1, 5)))  # type: ignore[attr-defined]


def test_a_new_neighbour_gets_no_copies_before_it_asks_for_them() -> None:
    tree = Tree().attached()
    tree.brisa.neighbour_up(4)
    tree.take()
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == []
    tree.brisa.on_activate(4, Activate(FLOW))
    tree.take()
    tree.brisa.on_data(1, data(2, (0, 1)))
    assert tree.take() == [Send(4, data(2, (0, 1, 5)))]


def test_a_new_neighbour_hears_nothing_of_a_flow_in_which_we_have_no_place() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, ()))
    tree.take()
    tree.brisa.neighbour_up(4)
    assert tree.take() == []


def test_a_neighbour_that_is_no_parent_is_not_missed() -> None:
    tree = Tree()
    tree.brisa.on_data(1, data(0, (0, 1)))
    tree.take()
    tree.brisa.neighbour_down(2, True)
    assert tree.take() == []
    tree.brisa.on_data(1, data(1, (0, 1)))
    assert tree.take() == [Send(3, data(1, (0, 1, 5)))]
