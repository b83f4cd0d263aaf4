"""How long a flow lives: as long as there are signs of life of its source; and nobody's word brings a dead one back."""

import pytest

from epicast.core.message import AGE_MAX, Position
from epicast.core.recording import Send
from epicast.dissemination.brisa_messages import UPWARD, Activate, Data, Whereabouts
from tests.support.neighbours import Tree, data, position

FLOW = (0, 0)
SECOND = 1_000_000
GONE, FORGET = 30 * SECOND, 600 * SECOND


def watched(**settings: object) -> Tree:
    """Attached to 1, which tells nothing yet."""
    tree = Tree(**settings).attached()  # type: ignore[arg-type]
    tree.brisa.start()
    return tree


def told_age(tree: Tree) -> int:
    [told] = tree.brisa.positions()
    return told.age


def keep_alives(tree: Tree, seconds: int, age: int, *, grows: bool) -> None:
    """Of the parent, one each second."""
    for second in range(seconds):
        if FLOW in tree.brisa.flows:
            tree.hears(1, (0, 1), age=age + second if grows else age)
        tree.env.advance(SECOND)


# Signs of life


def test_the_source_is_up_as_long_as_it_tells() -> None:
    tree = Tree(me=0)
    tree.brisa.start()
    tree.brisa.broadcast("t", b"x")
    tree.env.advance(2 * FORGET)
    assert told_age(tree) == 0


def test_a_sign_of_life_grows_older_on_its_way_and_as_time_passes() -> None:
    tree = Tree().attached()
    tree.env.advance(60 * SECOND)
    tree.hears(1, (0, 1), age=0)
    assert told_age(tree) == 1
    tree.env.advance(10 * SECOND)
    assert told_age(tree) == 11
    tree.hears(1, (0, 1), age=30)  # older than what we have heard
    assert told_age(tree) == 11
    tree.hears(2, (0, 2), age=2)  # any neighbour's word counts
    assert told_age(tree) == 3


def test_two_processes_do_not_keep_a_dead_source_alive_for_each_other() -> None:
    one, two = Tree(me=5, neighbours=(6,)), Tree(me=6, neighbours=(5,))
    for tree, other in ((one, 6), (two, 5)):
        tree.brisa.on_data(other, data(0, ()))
    for _ in range(100):
        for tree, other, told in ((one, 6, two.brisa.positions()), (two, 5, one.brisa.positions())):
            tree.env.advance(SECOND)
            tree.brisa.heard(other, told, tree.env.now_us())
    assert one.brisa.positions() == two.brisa.positions() == (), "both have fallen silent about it"


def test_what_the_source_publishes_is_a_sign_of_life() -> None:
    tree = watched()
    for second in range(40):
        tree.brisa.on_data(1, data(1 + second, (0, 1)))
        tree.env.advance(20 * SECOND)
    assert FLOW in tree.brisa.flows
    assert told_age(tree) <= 20


def test_what_others_publish_is_none() -> None:
    tree = watched()
    tree.brisa.neighbour_down(1, True)
    for second in range(35):
        tree.brisa.on_data(2, data(second, (), source=9, flags=UPWARD))
        tree.env.advance(20 * SECOND)
        if FLOW not in tree.brisa.flows:
            break
    assert second in (29, 30)


# The end of a flow


def test_a_flow_ends_although_its_parent_stays_if_the_source_is_not_heard_of() -> None:
    tree = watched()
    keep_alives(tree, 598, 1, grows=True)
    assert FLOW in tree.brisa.flows
    keep_alives(tree, 3, 599, grows=True)
    assert tree.brisa.flows == {}


def test_a_silent_source_keeps_its_flow() -> None:
    tree = watched()
    keep_alives(tree, 1_300, 3, grows=False)
    assert tree.flow().parent == 1


def test_a_flow_lives_on_where_no_neighbour_ever_tells_its_position() -> None:
    tree = Tree()
    tree.members.news_us = 0
    tree.attached()
    tree.brisa.start()
    tree.env.advance(3 * FORGET)
    assert tree.flow().parent == 1


@pytest.mark.parametrize(("age", "met"), [(0, True), (299, True), (300, False), (AGE_MAX, False)])
def test_a_flow_whose_source_is_as_good_as_forgotten_is_not_met_on_a_neighbours_word(age: int, met: bool) -> None:
    for path in ((), (0, 2)):
        heard, told = Tree(), Tree()
        heard.hears(2, path, age=age)
        told.brisa.on_whereabouts(2, Whereabouts(position(path, age=age)))
        assert (FLOW in heard.brisa.flows, FLOW in told.brisa.flows) == (met, met)


def test_a_newcomer_forgets_a_dead_flow_when_the_others_do() -> None:
    tree = Tree(neighbours=(1,))
    tree.brisa.start()
    tree.hears(1, (), age=299)
    tree.env.advance(299 * SECOND)
    assert FLOW in tree.brisa.flows
    tree.env.advance(3 * SECOND)
    assert tree.brisa.flows == {}


def test_a_request_for_a_flow_that_we_do_not_know_brings_it_not_back() -> None:
    tree = Tree()
    tree.brisa.on_activate(2, Activate(FLOW))
    assert tree.brisa.flows == {}
    assert tree.take() == [Send(2, Whereabouts(Position(FLOW, (), age=AGE_MAX)))]


def test_who_is_told_that_a_neighbour_does_not_know_the_flow_asks_the_next() -> None:
    tree = Tree(neighbours=(1, 2, 3)).attached()
    tree.hears(2, (0, 2))
    tree.hears(3, (0, 3))
    tree.brisa.neighbour_down(1, True)
    assert tree.take() == [Send(2, Activate(FLOW))]
    tree.brisa.on_whereabouts(2, Whereabouts(Position(FLOW, (), age=AGE_MAX)))
    assert tree.take() == [Send(3, Activate(FLOW))]


# A source that is gone, until its flow is forgotten


def bereft() -> Tree:
    tree = watched()
    tree.brisa.neighbour_down(1, True)
    return tree


def test_a_path_to_a_source_that_nobody_has_heard_of_for_long_is_the_ghost_of_one() -> None:
    tree = bereft()
    tree.take()
    tree.hears(2, (0, 9, 2), age=33)
    assert tree.env.sent(Activate) == []
    tree.hears(3, (0, 9, 3), age=32)
    assert tree.env.sent(Activate) == [Send(3, Activate(FLOW))]


def test_the_more_rarely_neighbours_tell_the_longer_a_path_is_believed() -> None:
    tree = bereft()
    tree.members.news_us = 10 * SECOND
    tree.take()
    tree.hears(2, (0, 9, 2), age=290)
    assert tree.env.sent(Activate) == [Send(2, Activate(FLOW))]


def test_an_orphan_that_finds_nobody_for_long_stops_asking_everyone() -> None:
    tree = bereft()
    tree.env.advance(GONE)
    tree.take()
    tree.env.advance(300 * SECOND)
    assert tree.env.sent(Activate) == []
    assert tree.members.widened < 12


def test_such_an_orphan_still_finds_the_way_back() -> None:
    tree = bereft()
    tree.env.advance(300 * SECOND)
    tree.take()
    tree.hears(2, (0, 2), age=1)
    assert tree.take() == [Send(2, Activate(FLOW))]
    tree.told(2, (0, 2))
    assert tree.brisa.parents() == {FLOW: 2}
    assert told_age(tree) == 1


def test_nobody_is_told_of_a_source_that_is_gone_for_long() -> None:
    tree = bereft()
    tree.env.advance(2 * GONE)
    assert [told.path for told in tree.brisa.positions()] == [()]
    tree.env.advance(10 * SECOND)
    assert tree.brisa.positions() == ()


def test_only_a_process_that_might_have_a_parent_is_cut_off() -> None:
    tree = watched()
    assert not tree.brisa.is_cut_off(tree.flow())
    tree.brisa.neighbour_down(1, True)
    assert tree.brisa.is_cut_off(tree.flow())
    tree.env.advance(GONE + 10 * SECOND)
    assert not tree.brisa.is_cut_off(tree.flow()), "its source is gone"
    tree.hears(2, (0, 2), age=1)
    assert tree.brisa.is_cut_off(tree.flow()), "a neighbour has a way to the source"


# Publishers on the tree of a source that is gone


def test_a_publisher_leaves_the_tree_of_a_source_that_is_gone() -> None:
    tree = watched(reuse_depth=2)
    assert tree.brisa.broadcast("news", b"x") == (5, 0)
    tree.brisa.neighbour_down(1, True)
    assert tree.brisa.next_id("news") == (5, 1)
    tree.env.advance(GONE + SECOND)
    tree.take()
    source, seq = tree.brisa.next_id("news")
    assert tree.brisa.broadcast("news", b"x") == (source, seq)
    assert {sent.msg.flow for sent in tree.env.sent(Data)} == {(5, 0)}  # type: ignore[attr-defined]


def test_a_publisher_on_a_tree_that_was_forgotten_makes_another_one() -> None:
    tree = watched(reuse_depth=2)
    tree.brisa.broadcast("news", b"x")
    tree.brisa.neighbour_down(1, True)
    tree.env.advance(FORGET + 2 * SECOND)
    assert tree.brisa.flows == {}
    tree.brisa.broadcast("news", b"x")
    assert list(tree.brisa.flows) == [(5, 0)]


def test_a_publisher_rather_moves_to_another_tree_that_is_near() -> None:
    tree = watched(reuse_depth=2)
    tree.brisa.broadcast("news", b"x")
    tree.brisa.neighbour_down(1, True)
    tree.env.advance(GONE + SECOND)
    tree.brisa.on_data(2, data(0, (7, 2), source=7, flow=(7, 0)))
    tree.take()
    tree.brisa.broadcast("news", b"x")
    assert tree.env.sent(Data)[0].msg.flow == (7, 0)  # type: ignore[attr-defined]
