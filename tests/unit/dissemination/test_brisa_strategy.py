"""Which parent is preferred: figure 4.4 (J3), with X = 1, Y = 2 and A = 5."""

import pytest

from epicast.core.ids import NOBODY
from epicast.core.message import DELAY_UNKNOWN
from epicast.core.recording import Record, Send
from epicast.core.records import Kind
from epicast.dissemination.brisa_messages import Activate, Deactivate, Recover
from tests.support.neighbours import Tree, data

FLOW = (0, 0)
CHEAPER_Y = {1: 80_000, 2: 20_000}
CHEAPER_X = {1: 20_000, 2: 80_000}


def a_with_parent_x(rtts_us: dict[int, int], strategy: str = "delay-aware") -> Tree:
    return Tree(rtts_us=rtts_us, strategy=strategy).attached(parent=1)  # type: ignore[arg-type]


# Figure 4.4, E-B1: it is A that selects Y. Both are 40 ms away from the source, so the last hop decides (E-B16)


def look(tree: Tree, **settings: object) -> None:
    """Both neighbours tell where they stand, then it is our turn to look for a better parent."""
    tree.hears(1, (0, 1), delay=400)
    tree.hears(2, (0, 2), delay=400, **settings)  # type: ignore[arg-type]
    while tree.brisa.parents()[FLOW] == 1 and not tree.env.sent(Activate) and tree.env.now_us() < 60_000_000:
        tree.env.advance(1_000_000)


def looking(rtts_us: dict[int, int], **settings: object) -> Tree:
    """A is attached to X, and asks Y as soon as it has seen that Y is better."""
    tree = Tree(rtts_us=rtts_us, strategy="delay-aware", confirm_us=120_000_000, **settings).attached(parent=1)  # type: ignore[arg-type]
    tree.brisa.start()
    tree.env.advance(20_000_000)
    tree.take()
    return tree


def asking() -> Tree:
    tree = looking(CHEAPER_Y)
    look(tree)
    assert tree.take() == [Send(2, Activate(FLOW))]
    return tree


def test_a_neighbour_over_which_messages_come_much_sooner_becomes_the_candidate() -> None:
    tree = asking()
    assert tree.flow().parent == 1


def test_a_candidate_that_confirms_replaces_the_parent() -> None:
    tree = asking()
    tree.told(2, (0, 2))
    assert tree.take() == [Send(1, Deactivate(FLOW))]
    assert (tree.flow().parent, tree.flow().path) == (2, (0, 2, 5))
    assert tree.env.records == [Record(Kind.PARENT, 2, 0, 0)]


@pytest.mark.parametrize("rtts_us", [CHEAPER_X, {1: 50_000, 2: 50_000}, {1: 50_000}, {2: 50_000}])
def test_a_neighbour_that_is_not_known_to_be_better_is_not_asked(rtts_us: dict[int, int]) -> None:
    tree = looking(rtts_us)
    look(tree)
    assert tree.take() == []


def test_the_whole_way_from_the_source_counts() -> None:
    """E-B16: its last hop is 30 ms shorter, but it is 100 ms farther away from the source."""
    tree = looking(CHEAPER_Y)
    tree.hears(1, (0, 1), delay=400)
    tree.hears(2, (0, 9, 2), delay=1_400)
    tree.env.advance(60_000_000)
    assert tree.take() == []
    tree.hears(2, (0, 9, 2), delay=100)
    tree.env.advance(60_000_000)
    assert Send(2, Activate(FLOW)) in tree.take()


@pytest.mark.parametrize(
    ("parent_delay", "rtt_us", "asked"),
    [
        (400, 9_800, True),  # 44.9 instead of 50 ms: more than a tenth
        (400, 11_200, False),  # 45.6 instead of 50 ms
        (0, 15_800, True),  # 7.9 instead of 10 ms: more than 2 ms
        (0, 16_200, False),  # 8.1 instead of 10 ms: more than a tenth, but not 2 ms
    ],
)
def test_a_small_gain_is_not_worth_a_change(parent_delay: int, rtt_us: int, asked: bool) -> None:
    tree = looking({1: 20_000, 2: rtt_us})
    tree.hears(1, (0, 1), delay=parent_delay)
    tree.hears(2, (0, 2), delay=parent_delay)
    tree.env.advance(60_000_000)
    assert (Send(2, Activate(FLOW)) in tree.take()) is asked


def test_after_a_change_the_next_one_waits() -> None:
    tree = asking()
    tree.told(2, (0, 2), delay=400)
    changed_us = tree.env.now_us()
    tree.take()
    tree.hears(1, (0, 1), delay=1)  # now X is better again
    while not tree.env.sent(Activate):
        tree.env.advance(1_000_000)
    assert tree.env.now_us() - changed_us >= 10_000_000


def test_a_process_tells_how_long_messages_take_to_it() -> None:
    tree = looking(CHEAPER_X)
    tree.hears(1, (0, 1), delay=400)
    assert tree.brisa.positions()[0].delay == 400 + 100  # half of 20 ms on top
    tree.members.rtts_us.clear()
    assert tree.brisa.positions()[0].delay == DELAY_UNKNOWN
    source = Tree(me=0, strategy="delay-aware")
    source.brisa.broadcast("t", b"x")
    assert source.brisa.positions()[0].delay == 0


def test_where_nobody_compares_delays_nobody_tells_any() -> None:
    tree = a_with_parent_x(CHEAPER_X, "first-come")
    tree.hears(1, (0, 1), delay=400)
    assert tree.brisa.positions()[0].delay == 0


def test_first_come_deactivates_the_cheaper_link() -> None:
    tree = a_with_parent_x(CHEAPER_Y, "first-come")
    tree.brisa.on_data(2, data(0, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW, mutual=True))]
    assert tree.flow().parent == 1


@pytest.mark.parametrize("strategy", ["first-come", "delay-aware"])
def test_a_duplicate_came_later_than_the_parents_copy_however_short_its_last_hop(strategy: str) -> None:
    tree = a_with_parent_x(CHEAPER_Y, strategy)
    tree.brisa.on_data(1, data(1, (0, 1)))
    tree.take()
    tree.brisa.on_data(2, data(1, (0, 2)))
    assert tree.take() == [Send(2, Deactivate(FLOW))]


# Between the request and its answer


def ask(tree: Tree, peer: int) -> None:
    tree.hears(peer, (0, peer))
    tree.brisa.start_switch(tree.flow(), peer)


def test_a_process_about_to_change_its_parent_says_so() -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    ask(tree, 2)
    assert tree.brisa.positions()[0].pending


def test_a_candidate_in_our_subtree_is_not_asked() -> None:
    tree = looking(CHEAPER_Y)
    tree.hears(1, (0, 1), delay=400)
    tree.hears(2, (0, 1, 5, 2), delay=1)
    tree.env.advance(60_000_000)
    assert tree.take() == []


@pytest.mark.parametrize("answer", [{"path": (0, 1, 5, 2)}, {"path": ()}, {"path": (0, 2), "pending": True}])
def test_a_candidate_that_turns_out_to_be_unfit_is_dropped(answer: dict[str, object]) -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    ask(tree, 2)
    tree.take()
    tree.told(2, **answer)  # type: ignore[arg-type]
    assert tree.flow().parent == 1
    assert not tree.brisa.positions()[0].pending
    assert tree.flow().path == (0, 1, 5)


def test_only_one_candidate_is_asked_at_a_time() -> None:
    tree = Tree(rtts_us={1: 80_000, 2: 20_000, 3: 10_000}, strategy="delay-aware").attached()
    ask(tree, 2)
    tree.take()
    tree.brisa.on_data(3, data(0, (0, 3)))
    assert tree.take() == [Send(3, Deactivate(FLOW))]


def test_copies_from_the_candidate_are_not_refused_while_it_is_asked() -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    tree.brisa.on_data(1, data(1, (0, 1)))
    ask(tree, 2)
    tree.take()
    tree.brisa.on_data(2, data(1, (0, 2)))
    assert tree.take() == []


def test_a_keep_alive_of_the_candidate_is_no_answer() -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    ask(tree, 2)
    tree.hears(2, (0, 2))
    assert tree.flow().parent == 1


def test_a_parent_that_fails_while_another_is_asked_makes_it_a_repair() -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    ask(tree, 2)
    tree.brisa.neighbour_down(1, True)
    tree.told(2, (0, 2))
    assert tree.flow().parent == 2
    assert Record(Kind.REPAIR, 2, 0, 0, detail="soft") in tree.env.records


def test_a_new_parent_is_not_judged_by_the_old_ones_failings() -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    tree.brisa.start()
    tree.hears(1, (0, 1), pending=True)
    tree.env.advance(3_000_000)
    ask(tree, 2)
    tree.told(2, (0, 2))
    tree.env.advance(2_000_000)
    assert tree.flow().parent == 2


def test_a_candidate_that_does_not_answer_is_given_up() -> None:
    tree = Tree(rtts_us=CHEAPER_Y, strategy="delay-aware", confirm_us=5_000_000).attached()  # type: ignore[arg-type]
    tree.brisa.start()
    tree.env.advance(3_000_000)
    ask(tree, 2)
    tree.env.advance(4_000_000)
    assert tree.brisa.positions()[0].pending
    tree.env.advance(2_000_000)
    assert not tree.brisa.positions()[0].pending
    assert tree.flow().path == (0, 1, 5)


def test_a_candidate_that_goes_away_is_given_up() -> None:
    tree = a_with_parent_x(CHEAPER_Y)
    ask(tree, 2)
    tree.brisa.neighbour_down(2, True)
    assert tree.flow().parent == 1
    assert not tree.brisa.positions()[0].pending
    assert tree.flow().path == (0, 1, 5)


@pytest.mark.parametrize(("other", "yields"), [(2, True), (8, False)])
def test_of_two_that_want_each_other_the_one_with_the_lower_id_may(other: int, yields: bool) -> None:
    tree = Tree(me=5, neighbours=(1, other), rtts_us={1: 80_000, other: 20_000}, strategy="delay-aware").attached()
    ask(tree, other)
    tree.brisa.on_activate(other, Activate(FLOW))
    assert tree.flow().switch == (None if yields else other)


def test_a_third_process_that_asks_for_copies_does_not_stop_a_change() -> None:
    tree = Tree(neighbours=(1, 2, 8), rtts_us={1: 80_000, 8: 20_000}, strategy="delay-aware").attached()
    ask(tree, 8)
    tree.brisa.on_activate(2, Activate(FLOW))
    assert tree.flow().switch == 8


# Candidates of a repair


@pytest.mark.parametrize(
    ("strategy", "rtts_us", "chosen"),
    [
        ("first-come", {2: 10_000, 3: 90_000, 4: 50_000}, 4),  # nearest to the source, then to us
        ("first-come", {}, 3),  # then by id
        ("delay-aware", {2: 10_000, 3: 90_000, 4: 50_000}, 2),
        ("delay-aware", {3: 90_000}, 3),  # unknown is far
    ],
)
def test_the_best_of_several_candidates_is_asked(strategy: str, rtts_us: dict[int, int], chosen: int) -> None:
    tree = Tree(neighbours=(1, 2, 3, 4), rtts_us=rtts_us, strategy=strategy).attached()  # type: ignore[arg-type]
    tree.hears(2, (0, 7, 2))
    tree.hears(3, (0, 3))
    tree.hears(4, (0, 4))
    tree.brisa.neighbour_down(1, True)
    assert tree.take() == [Send(chosen, Activate(FLOW))]


# A flow that a neighbour tells of


def test_a_process_that_hears_of_a_flow_asks_to_be_part_of_it() -> None:
    tree = Tree()
    tree.hears(2, (0, 2), last=7)
    assert tree.take() == [Send(2, Activate(FLOW))]
    assert tree.brisa.parents() == {FLOW: None}


def test_a_process_that_is_let_in_asks_for_the_past_and_counts_no_repair() -> None:
    tree = Tree()
    tree.env.advance(3_000_000)
    tree.hears(2, (0, 2), last=7)
    tree.take()
    tree.told(2, (0, 2), last=7)
    [ask] = tree.env.sent(Recover)
    assert (ask.to, ask.msg.ranges) == (2, ())  # type: ignore[attr-defined]
    assert ask.msg.age_us >= 3_000_000  # type: ignore[attr-defined]
    assert tree.env.records == [Record(Kind.PARENT, 2, 0, 0)]


def test_a_process_that_hears_of_a_flow_without_a_way_into_it_waits() -> None:
    tree = Tree()
    tree.hears(2, ())
    assert tree.take() == []
    tree.hears(3, (0, 3))
    assert tree.take() == [Send(3, Activate(FLOW))]


def test_a_process_that_finds_no_way_into_a_flow_asks_for_a_wider_view() -> None:
    tree = Tree()
    tree.hears(2, ())
    tree.env.advance(1_000_000)
    assert tree.members.widened == 1
    assert tree.take() == []


def test_what_a_stranger_tells_is_ignored() -> None:
    tree = Tree()
    tree.hears(77, (0, 77))
    tree.told(77, (0, 77))
    assert tree.take() == []
    assert tree.brisa.flows == {}
    assert NOBODY not in tree.brisa.neighbours
