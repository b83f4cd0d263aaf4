"""Making and ending links: requests, answers, disconnects, failures, and what replaces a lost neighbour."""

from collections.abc import Callable
from typing import Any

import pytest

from epicast.core.recording import Close, Open, Send
from epicast.membership.hyparview import HyParView
from epicast.membership.hyparview_messages import (
    Disconnect,
    ForwardJoin,
    Join,
    KeepAlive,
    Neighbour,
    NeighbourReply,
    Priority,
    Shuffle,
    ShuffleReply,
)
from tests.support.neighbours import hyparview

TIMEOUT = 1_500_000
QUIET: dict[str, Any] = {"keep_alive_us": 40_000_000, "silence_us": 80_000_000, "shuffle_interval_us": 40_000_000}
SINGLE: dict[str, Any] = {"active_size": 1, "expansion": 1.0}  # a view with room for one


# Requests


@pytest.mark.parametrize("priority", list(Priority))
def test_anyone_is_welcome_below_the_target(priority: Priority) -> None:
    view, env, ear = hyparview(active=[1], active_size=2)
    view.on_neighbour(9, Neighbour(priority))
    assert env.effects == [Send(9, NeighbourReply(True)), Open(9)]
    assert ear.notes == [("up", 9)]


@pytest.mark.parametrize(
    ("priority", "accepted"), [(Priority.LOW, True), (Priority.HIGH, True), (Priority.WALK, False)]
)
def test_between_target_and_limit_a_walk_is_refused(priority: Priority, accepted: bool) -> None:
    view, _, _ = hyparview(active=[1, 2], active_size=2, expansion=2.0)
    view.on_neighbour(9, Neighbour(priority))
    assert (9 in view.active) is accepted
    assert (9 in view.passive) is not accepted


@pytest.mark.parametrize("priority", [Priority.LOW, Priority.WALK])
def test_a_full_view_refuses_and_remembers_who_asked(priority: Priority) -> None:
    view, env, _ = hyparview(active=[1], **SINGLE)
    view.on_neighbour(9, Neighbour(priority))
    assert env.effects == [Send(9, NeighbourReply(False))]
    assert list(view.passive) == [9]


def test_a_full_view_makes_room_for_a_process_without_neighbours() -> None:
    view, env, ear = hyparview(active=[1], **SINGLE)
    view.on_neighbour(9, Neighbour(Priority.HIGH))
    assert env.effects == [
        Send(9, NeighbourReply(True)),
        Send(1, Disconnect(leaving=False)),
        Close(1),
        Open(9),
    ]
    assert list(view.active) == [9]
    assert list(view.passive) == [1]
    assert ear.notes == [("down", 1, "alive"), ("up", 9)]


@pytest.mark.parametrize("used", [(1, 2), (2, 3), (1, 3)])
def test_whom_the_layer_above_needs_is_evicted_last(used: tuple[int, ...]) -> None:
    view, _, ear = hyparview(active=[1, 2, 3], active_size=3, expansion=1.0)
    ear.used = used
    view.on_neighbour(9, Neighbour(Priority.HIGH))
    assert sorted(map(int, view.active)) == sorted([*used, 9])
    ear.used = (*used, 9)
    view.on_neighbour(10, Neighbour(Priority.HIGH))
    assert 10 in view.active  # nobody is without use, and yet there is room
    assert len(view.active) == 3


def test_a_neighbour_that_asks_again_is_accepted_again() -> None:
    view, env, ear = hyparview(active=[1], **SINGLE)
    view.on_neighbour(1, Neighbour(Priority.WALK))
    assert env.effects == [Send(1, NeighbourReply(True))]
    assert ear.notes == []


def test_the_active_view_never_exceeds_its_limit() -> None:
    """H-I2, whatever comes in."""
    view, _, _ = hyparview(active_size=3, expansion=1.5)
    for peer in range(1, 100):
        view.on_join(peer, Join())
        view.on_neighbour(peer + 100, Neighbour(Priority.HIGH))
        view.on_neighbour_reply(peer + 200, NeighbourReply(True))
        assert len(view.active) <= 5
        assert len(view.pulses) == len(view.active)


def test_the_limit_is_rounded_up() -> None:
    assert hyparview(active_size=3, expansion=1.5)[0].size_max == 5


# Answers


def test_a_refusal_leads_to_the_next_candidate() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[3, 4], active_size=2)
    view.on_link_down(1)
    [first] = env.sent(Neighbour)
    other = 7 - first.to  # type: ignore[operator]
    env.take()
    view.on_neighbour_reply(first.to, NeighbourReply(False))
    assert env.effects == [Send(other, Neighbour(Priority.LOW))]


def test_who_refused_is_asked_again_only_after_the_next_shuffle() -> None:
    settings = QUIET | {"shuffle_interval_us": 10_000_000, "refresh": 0.0}
    view, env, _ = hyparview(active=[1, 2], passive=[3], active_size=2, **settings)
    view.start(())
    view.on_link_down(1)
    view.on_neighbour_reply(3, NeighbourReply(False))
    env.take()
    view.on_neighbour_reply(98, NeighbourReply(False))  # gives it a chance to ask
    assert env.effects == []
    env.advance(10_000_000)
    assert env.sent(Neighbour) == [Send(3, Neighbour(Priority.LOW))]


def test_a_process_that_does_not_answer_is_forgotten_and_another_asked() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[3, 4], active_size=2)
    view.on_link_down(1)
    [first] = env.sent(Neighbour)
    other = 7 - first.to  # type: ignore[operator]
    env.take()
    env.advance(TIMEOUT - 1)
    assert env.effects == []
    env.advance(1)
    assert env.effects == [Send(other, Neighbour(Priority.LOW))]
    assert list(view.passive) == [other]
    assert first.to in view.lost


def test_an_acceptance_that_comes_late_is_taken_up_while_there_is_room() -> None:
    view, env, _ = hyparview(active=[1], active_size=1, expansion=2.0)
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert env.effects == [Open(9)]


def test_an_acceptance_that_comes_too_late_is_declined() -> None:
    view, env, ear = hyparview(active=[1], **SINGLE)
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert env.effects == [Send(9, Disconnect(leaving=False))]
    assert ear.notes == []


def test_an_acceptance_in_time_makes_room() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], **SINGLE)
    view.on_link_down(1)
    view.on_join(5, Join())  # has taken the free place meanwhile
    env.take()
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert env.effects == [Send(5, Disconnect(leaving=False)), Close(5), Open(9)]


def test_a_second_acceptance_changes_nothing() -> None:
    view, env, ear = hyparview(active=[1], **SINGLE)
    view.on_neighbour_reply(1, NeighbourReply(True))
    assert env.effects == []
    assert ear.notes == []


# Disconnects


def test_a_neighbour_that_disconnects_becomes_a_passive_one() -> None:
    view, env, ear = hyparview(active=[1, 2], active_size=1)
    view.on_disconnect(1, Disconnect(leaving=False))
    assert env.effects == [Close(1)]
    assert list(view.passive) == [1]
    assert ear.notes == [("down", 1, "alive")]


def test_a_neighbour_that_leaves_is_forgotten() -> None:
    view, env, ear = hyparview(active=[1, 2], active_size=1)
    view.on_disconnect(1, Disconnect(leaving=True))
    assert env.effects == [Close(1)]
    assert list(view.passive) == list(view.lost) == []
    assert ear.notes == [("down", 1, "gone")]


def test_a_passive_peer_that_leaves_is_forgotten() -> None:
    view, env, ear = hyparview(active=[1], passive=[2, 3], active_size=1)
    view.on_disconnect(2, Disconnect(leaving=True))
    assert list(view.passive) == [3]
    assert env.effects == ear.notes == []


def test_a_contact_that_leaves_is_not_asked_again() -> None:
    view, env, _ = hyparview(**QUIET)
    view.start((1, 2))
    for peer in (1, 2):
        view.on_neighbour_reply(peer, NeighbourReply(True))
        view.on_disconnect(peer, Disconnect(leaving=True))
    env.take()
    env.advance(35_000_000)
    assert env.effects == []


def test_a_passive_peer_that_disconnects_stays_where_it_is() -> None:
    """E-CLON-8: it is the active view that a Disconnect is about."""
    view, env, ear = hyparview(active=[1], passive=[2], active_size=1)
    view.on_disconnect(2, Disconnect(leaving=False))
    assert list(view.active) == [1]
    assert list(view.passive) == [2]
    assert env.effects == ear.notes == []


# Replacements


def test_a_lost_neighbour_is_replaced_from_the_passive_view() -> None:
    """E-H1: not from the active one."""
    view, env, _ = hyparview(active=[1, 2], passive=[9], active_size=2)
    view.on_link_down(1)
    assert env.effects == [Close(1), Send(9, Neighbour(Priority.LOW))]


def test_the_last_neighbour_is_replaced_with_urgency() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1)
    view.on_link_down(1)
    assert env.effects == [Close(1), Send(9, Neighbour(Priority.HIGH))]


def test_a_neighbour_lost_above_target_is_not_replaced() -> None:
    """H-I3, by eviction and by failure."""
    view, env, _ = hyparview(active=[1, 2, 3, 4], passive=[8, 9], active_size=2)
    view.on_disconnect(1, Disconnect(leaving=False))
    view.on_link_down(2)
    assert env.effects == [Close(1), Close(2)]
    view.on_link_down(3)
    assert len(env.sent(Neighbour)) == 1


def test_no_more_are_asked_than_are_wanted() -> None:
    view, env, _ = hyparview(active=[1, 2, 3], passive=[5, 6, 7, 8, 9], active_size=3)
    view.on_link_down(1)
    view.on_link_down(2)
    asked = env.sent(Neighbour)
    assert len(asked) == len({each.to for each in asked}) == 2


def test_nobody_is_asked_twice_at_once() -> None:
    view, env, _ = hyparview(active=[1, 2, 3], passive=[9], active_size=3)
    view.on_link_down(1)
    view.on_link_down(2)
    assert env.sent(Neighbour) == [Send(9, Neighbour(Priority.LOW))]


def test_a_neighbour_that_disconnects_below_target_is_replaced() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[9], active_size=2)
    view.on_disconnect(1, Disconnect(leaving=True))
    assert env.effects == [Close(1), Send(9, Neighbour(Priority.LOW))]


def test_a_process_that_lost_everyone_asks_those_again_who_refused() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, **QUIET)
    view.on_link_down(1)
    view.on_neighbour_reply(9, NeighbourReply(False))
    assert env.take()[1:] == [Send(9, Neighbour(Priority.HIGH)), Send(1, Join())]
    env.advance(TIMEOUT)
    assert Send(9, Neighbour(Priority.HIGH)) not in env.take()  # a Join is under way again
    view.on_neighbour_reply(1, NeighbourReply(False))
    assert env.take()[0] == Send(9, Neighbour(Priority.HIGH))


def test_a_refusal_is_forgotten_with_the_peer() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, passive_size=1)
    view.widen()
    view.on_neighbour_reply(9, NeighbourReply(False))
    view.on_shuffle_reply(1, ShuffleReply((8,)))
    view.on_shuffle_reply(1, ShuffleReply((9,)))
    env.take()
    view.widen()
    assert env.effects == [Send(9, Neighbour(Priority.HIGH))]


def test_a_process_never_becomes_its_own_neighbour() -> None:
    view, _, ear = hyparview(me=0, active=[1])
    view.on_join(0, Join())
    view.on_neighbour(0, Neighbour(Priority.HIGH))
    view.on_neighbour_reply(0, NeighbourReply(True))
    view.on_keep_alive(0, KeepAlive(0, 1))
    assert list(view.active) == [1]
    assert 0 not in view.passive
    assert ear.notes == []


def test_an_eviction_keeps_the_evicted_in_mind() -> None:
    view, _, _ = hyparview(active=[1], passive=[2], passive_size=1, **SINGLE)
    view.on_join(9, Join())
    assert list(view.active) == [9]
    assert list(view.passive) == [1]


def test_a_process_is_in_one_view_at_most() -> None:
    view, _, _ = hyparview(active=[1], passive=[9], active_size=4)
    view.on_neighbour(9, Neighbour(Priority.LOW))
    assert sorted(view.active) == [1, 9]
    assert list(view.passive) == []


# Failures


def test_a_link_that_goes_down_is_a_failure() -> None:
    view, env, ear = hyparview(active=[1, 2], active_size=1)
    view.on_link_down(1)
    assert env.effects == [Close(1)]
    assert ear.notes == [("down", 1, "gone")]
    assert list(view.lost) == [1]
    assert list(view.passive) == []


def test_news_of_links_to_strangers_change_nothing() -> None:
    view, env, ear = hyparview(active=[1])
    view.on_link_down(9)
    view.on_link_up(9)
    view.on_link_up(1)
    assert env.effects == ear.notes == []


def test_no_more_lost_peers_are_remembered_than_allowed() -> None:
    view, _, _ = hyparview(active=range(1, 9), active_size=4, lost_size=3)
    for peer in range(1, 9):
        view.on_link_down(peer)
    assert len(view.lost) == 3


def test_a_lost_peer_that_is_lost_again_displaces_no_other() -> None:
    view, env, _ = hyparview(active=[1, 2], active_size=1, lost_size=2, **QUIET)
    view.on_link_down(1)
    view.on_link_down(2)
    env.advance(10 * TIMEOUT)  # asks them in turn, in vain
    assert len(env.sent(Join)) >= 10
    assert sorted(view.lost) == [1, 2]


def test_a_contact_that_falls_silent_later_is_no_reason_to_join_again() -> None:
    view, env, _ = hyparview(active_size=2, **QUIET)
    view.start((1,))
    view.on_neighbour_reply(1, NeighbourReply(True))
    view.on_neighbour(2, Neighbour(Priority.LOW))
    view.on_disconnect(1, Disconnect(leaving=False))
    assert Send(1, Neighbour(Priority.LOW)) in env.take()
    env.advance(2 * TIMEOUT)
    assert env.sent(Join) == []


def test_a_lost_peer_that_comes_back_is_no_longer_lost() -> None:
    view, _, _ = hyparview(active=[1, 2], active_size=1)
    view.on_link_down(1)
    view.on_neighbour(1, Neighbour(Priority.LOW))
    assert list(view.lost) == []


def test_a_neighbour_is_not_lost_because_an_old_request_was_not_answered() -> None:
    """It was asked, did not answer, and came by itself."""
    view, env, _ = hyparview(active=[1], passive=[9], active_size=2)
    view.on_link_down(1)
    view.on_join(9, Join())
    env.advance(TIMEOUT)
    assert 9 in view.active
    assert 9 not in view.lost


# Leaving


def test_a_process_that_leaves_says_goodbye_to_its_neighbours() -> None:
    view, env, ear = hyparview(active=[1, 2])
    view.leave()
    assert env.effects == [Send(1, Disconnect(leaving=True)), Send(2, Disconnect(leaving=True)), Close(1), Close(2)]
    assert ear.notes == [("down", 1, "alive"), ("down", 2, "alive")]
    assert list(view.peers()) == []


def test_a_process_that_left_has_nothing_more_to_do() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[3])
    view.start((4,))
    view.on_link_down(1)
    view.leave()
    assert not any(timer.live for timer in env.timers)
    env.take()
    env.advance(60_000_000)
    assert env.effects == []


@pytest.mark.parametrize(
    "knock",
    [
        lambda view: view.on_join(9, Join()),
        lambda view: view.on_forward_join(9, ForwardJoin(8, 0)),
        lambda view: view.on_neighbour_reply(9, NeighbourReply(True, (7,))),
        lambda view: view.on_shuffle(9, Shuffle(9, 0, (9,))),
        lambda view: view.on_shuffle_reply(9, ShuffleReply((9,))),
        lambda view: view.on_disconnect(1, Disconnect(leaving=False)),
        lambda view: view.on_link_down(1),
        lambda view: view.widen(),
    ],
)
def test_a_process_that_left_does_not_react(knock: Callable[[HyParView], None]) -> None:
    view, env, ear = hyparview(active=[1], passive=[2])
    view.leave()
    env.take()
    ear.notes.clear()
    knock(view)
    assert env.effects == ear.notes == []


def test_a_process_that_left_refuses_links() -> None:
    view, env, _ = hyparview()
    view.leave()
    view.on_neighbour(9, Neighbour(Priority.HIGH))
    assert env.effects == [Send(9, NeighbourReply(False))]


def test_a_process_that_left_says_so_to_whoever_holds_it_for_a_neighbour() -> None:
    view, env, _ = hyparview()
    view.leave()
    view.on_keep_alive(9, KeepAlive(0, 1))
    assert env.effects == [Send(9, Disconnect(leaving=True))]
