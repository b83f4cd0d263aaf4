"""Shuffling, probing the passive and the lost, and widening the view."""

from typing import Any

import pytest

from epicast.core.recording import Close, Open, RecordingEnv, Send
from epicast.membership.hyparview import HyParView
from epicast.membership.hyparview_messages import (
    Disconnect,
    ForwardJoin,
    Neighbour,
    NeighbourReply,
    Priority,
    Shuffle,
    ShuffleReply,
)
from tests.support.neighbours import STRANGER, hyparview

PERIOD = 10_000_000
SHUFFLES: dict[str, Any] = {  # nothing else happens by itself
    "shuffle_interval_us": PERIOD,
    "keep_alive_us": 1_000_000_000,
    "silence_us": 2_000_000_000,
    "refresh": 0.0,
    "island_periods": 0,
}
ISLAND = SHUFFLES | {"island_periods": 3}


# The passive view


def test_a_full_passive_view_takes_a_newcomer_in_the_place_of_another() -> None:
    """E-CLON-7: one is evicted, then the newcomer is inserted."""
    view, _, _ = hyparview(passive=[1, 2, 3], passive_size=3)
    view.on_shuffle_reply(STRANGER, ShuffleReply((9,)))
    assert len(view.passive) == 3
    assert 9 in view.passive


def test_a_newcomer_to_a_passive_view_with_room_displaces_nobody() -> None:
    view, _, _ = hyparview(passive=[1, 2], passive_size=3)
    view.on_shuffle_reply(STRANGER, ShuffleReply((9,)))
    assert sorted(view.passive) == [1, 2, 9]


def test_a_full_passive_view_loses_nobody_to_those_it_has() -> None:
    view, _, _ = hyparview(passive=[1, 2, 3], passive_size=3)
    view.on_shuffle_reply(STRANGER, ShuffleReply((3, 1, 2)))
    assert sorted(view.passive) == [1, 2, 3]


def test_neither_oneself_nor_neighbours_enter_the_passive_view() -> None:
    view, _, _ = hyparview(me=0, active=[1])
    view.on_shuffle_reply(STRANGER, ShuffleReply((0, 1, 2, 2)))
    assert list(view.passive) == [2]


def test_of_a_huge_sample_no_more_is_taken_than_fits() -> None:
    view, _, _ = hyparview(passive_size=5)
    view.on_shuffle_reply(STRANGER, ShuffleReply(tuple(range(1, 4000))))
    assert sorted(view.passive) == [1, 2, 3, 4, 5]


def test_a_huge_sample_in_a_reply_is_cut_as_well() -> None:
    view, _, _ = hyparview(passive_size=5, active_size=1)
    view.on_neighbour_reply(9, NeighbourReply(True, tuple(range(10, 4000))))
    assert sorted(view.passive) == [10, 11, 12, 13, 14]


# Sending


def shuffles_due(view: HyParView, periods: int = 1) -> None:
    view.start(())
    view.env.advance(periods * PERIOD)  # type: ignore[attr-defined]


def test_shuffles_walk_over_the_links_and_go_to_passive_peers_in_turn() -> None:
    view, env, _ = hyparview(me=0, active=[1], passive=[9], active_size=1, **SHUFFLES)
    shuffles_due(view)
    assert env.take() == [Send(1, Shuffle(0, 6, (0, 1, 9)))]
    env.advance(PERIOD)
    assert env.take() == [Send(9, Shuffle(0, 0, (0, 1, 9)))]
    view.on_shuffle_reply(9, ShuffleReply(()))
    env.advance(PERIOD)
    assert env.take() == [Send(1, Shuffle(0, 6, (0, 1, 9)))]


def test_a_shuffle_offers_oneself_and_some_of_both_views() -> None:
    view, env, _ = hyparview(me=0, active=range(1, 6), passive=range(11, 21), **SHUFFLES)
    shuffles_due(view)
    [shuffle] = env.sent(Shuffle)
    sample = shuffle.msg.sample  # type: ignore[attr-defined]
    assert sample[0] == 0
    assert len(set(sample)) == len(sample) == 1 + 3 + 4
    assert set(sample[1:4]) <= set(range(1, 6))
    assert set(sample[4:]) <= set(range(11, 21))


def test_a_process_without_neighbours_or_acquaintances_does_not_shuffle() -> None:
    view, env, _ = hyparview(**SHUFFLES)
    shuffles_due(view, periods=4)
    assert env.effects == []


# Answering


def test_a_shuffle_walks_on_with_one_step_less() -> None:
    view, env, _ = hyparview(active=[1, 2])
    view.on_shuffle(1, Shuffle(7, 3, (7, 8)))
    assert env.effects == [Send(2, Shuffle(7, 2, (7, 8)))]
    assert list(view.passive) == []


def test_a_shuffle_walks_neither_back_nor_to_its_origin() -> None:
    view, env, _ = hyparview(active=[1, 2, 7])
    for _ in range(20):
        view.on_shuffle(1, Shuffle(7, 3, (7,)))
    assert env.effects == [Send(2, Shuffle(7, 2, (7,)))] * 20


def test_at_its_end_a_shuffle_is_answered_with_passive_peers() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[3, 4])
    view.on_shuffle(1, Shuffle(7, 0, (7, 8)))
    [reply] = env.effects
    assert isinstance(reply, Send)
    assert reply.to == 7
    assert sorted(reply.msg.sample) == [3, 4]  # type: ignore[attr-defined]
    assert sorted(view.passive) == [3, 4, 7, 8]


def test_a_shuffle_that_cannot_walk_on_is_answered() -> None:
    view, env, _ = hyparview(active=[1])
    view.on_shuffle(1, Shuffle(7, 5, (7,)))
    assert env.effects == [Send(7, ShuffleReply((1,)))]  # with no passive view it tells of its neighbours
    assert list(view.passive) == [7]


def test_an_answer_is_no_larger_than_what_was_offered() -> None:
    view, env, _ = hyparview(passive=range(1, 11))
    view.on_shuffle(7, Shuffle(7, 0, (7, 8, 9)))
    [reply] = env.sent(ShuffleReply)
    assert len(reply.msg.sample) == 3  # type: ignore[attr-defined]


def test_ones_own_shuffle_that_comes_back_is_ignored() -> None:
    view, env, _ = hyparview(me=0, active=[1, 2])
    view.on_shuffle(1, Shuffle(0, 0, (0, 8)))
    assert env.effects == []
    assert list(view.passive) == []


def test_a_full_view_replaces_first_what_it_gave_away() -> None:
    view, env, _ = hyparview(passive=[1, 2, 3, 4], passive_size=4)
    view.on_shuffle(7, Shuffle(7, 0, (7, 8)))
    [reply] = env.sent(ShuffleReply)
    given_away = set(reply.msg.sample)  # type: ignore[attr-defined]
    assert set(view.passive) == ({1, 2, 3, 4} - given_away) | {7, 8}


def test_nothing_is_given_up_for_a_peer_that_is_not_taken_in() -> None:
    view, _, _ = hyparview(me=0, active=[5, 6], passive=[1, 2, 3, 4], passive_size=4)
    view.on_shuffle(7, Shuffle(7, 0, (0, 5, 6)))
    assert sorted(view.passive) == [1, 2, 3, 4]


# Probing


def test_a_passive_peer_that_does_not_answer_is_taken_for_lost() -> None:
    view, env, _ = hyparview(me=0, active=[1], passive=[9], active_size=1, **SHUFFLES)
    shuffles_due(view, periods=3)
    assert list(view.passive) == [9]
    env.advance(PERIOD)
    assert list(view.passive) == []
    assert list(view.lost) == [9]


def test_a_passive_peer_that_answers_stays() -> None:
    view, env, _ = hyparview(me=0, active=[1], passive=[9], active_size=1, **SHUFFLES)
    shuffles_due(view, periods=2)
    view.on_shuffle_reply(9, ShuffleReply(()))
    env.advance(2 * PERIOD)
    assert list(view.passive) == [9]
    assert list(view.lost) == []


def test_a_probed_peer_that_became_a_neighbour_is_not_lost() -> None:
    view, env, _ = hyparview(me=0, active=[1], passive=[9], active_size=1, **SHUFFLES)
    shuffles_due(view, periods=2)
    view.on_neighbour(9, Neighbour(Priority.LOW))
    env.advance(2 * PERIOD)
    assert 9 in view.active
    assert list(view.lost) == []


def test_a_lost_peer_is_asked_whether_it_is_there_again() -> None:
    view, env, _ = hyparview(me=0, active=[1, 2], active_size=1, **SHUFFLES)
    view.on_link_down(2)
    env.take()
    shuffles_due(view)
    assert Send(2, Shuffle(0, 0, (0, 1))) in env.effects


def test_a_lost_peer_that_answers_is_asked_for_a_link() -> None:
    view, env, _ = hyparview(active=[1, 2], active_size=1)
    view.on_link_down(2)
    env.take()
    view.on_shuffle_reply(2, ShuffleReply((7,)))
    assert env.effects == [Send(2, Neighbour(Priority.LOW))]
    assert list(view.lost) == []


def test_a_lost_peer_that_answers_twice_is_asked_once() -> None:
    view, env, _ = hyparview(active=[1, 2], active_size=1)
    view.on_link_down(2)
    env.take()
    view.on_shuffle_reply(2, ShuffleReply(()))
    view.on_shuffle_reply(2, ShuffleReply(()))
    assert env.effects == [Send(2, Neighbour(Priority.LOW))]


def test_a_lost_peer_that_answers_is_kept_in_mind_when_there_is_no_room() -> None:
    """It may be the only bridge to the other half of a healed partition."""
    view, env, _ = hyparview(active=[1, 2], active_size=1, expansion=2.0)
    view.on_link_down(2)
    view.on_neighbour(3, Neighbour(Priority.LOW))
    env.take()
    view.on_shuffle_reply(2, ShuffleReply(()))
    assert env.effects == []
    assert list(view.passive) == [2]


def test_a_lost_peer_that_answers_takes_the_place_of_a_neighbour_where_views_may_not_grow() -> None:
    """Full views refuse requests of low priority, so the halves of a healed partition would stay apart."""
    view, env, _ = hyparview(active=[1, 2], active_size=2, expansion=1.0)
    view.on_link_down(2)
    view.on_neighbour(3, Neighbour(Priority.LOW))
    env.take()
    view.on_shuffle_reply(2, ShuffleReply(()))
    assert env.effects == [Send(2, Neighbour(Priority.HIGH))]
    view.on_neighbour_reply(2, NeighbourReply(True))
    assert 2 in view.active
    assert len(view.active) == 2


def test_where_a_neighbour_is_in_use_none_is_given_up_for_a_lost_peer() -> None:
    view, env, ear = hyparview(active=[1, 2], active_size=2, expansion=1.0)
    view.on_link_down(2)
    view.on_neighbour(3, Neighbour(Priority.LOW))
    ear.used = (3,)
    env.take()
    view.on_shuffle_reply(2, ShuffleReply(()))
    assert env.effects == []


def test_a_contact_that_was_never_reached_is_probed() -> None:
    view, env, _ = hyparview(me=0, **SHUFFLES)
    view.start((1, 2))
    [first] = env.take()
    assert isinstance(first, Send)
    view.on_neighbour_reply(first.to, NeighbourReply(True))
    env.take()
    env.advance(PERIOD)
    other = 3 - first.to  # type: ignore[operator]
    assert Send(other, Shuffle(0, 0, (0, first.to))) in env.effects


def test_a_contact_in_the_passive_view_is_not_probed_as_well() -> None:
    view, env, _ = hyparview(me=0, active=[1], passive=[2], active_size=1, **SHUFFLES)
    view.start((2,))
    view.on_neighbour_reply(2, NeighbourReply(False))
    env.take()
    env.advance(PERIOD)
    assert [effect.to for effect in env.sent(Shuffle)] == [1]


def test_a_contact_that_answers_a_probe_is_kept_in_mind_and_not_asked_for_a_link() -> None:
    """It was never lost: active views change for failures and joins."""
    view, env, _ = hyparview(me=0, active=[1], active_size=1, expansion=2.0)
    view.start((2, 1))
    view.on_neighbour_reply(1, NeighbourReply(True))
    view.on_neighbour_reply(2, NeighbourReply(False))
    env.take()
    view.on_shuffle_reply(2, ShuffleReply(()))
    assert env.effects == []
    assert list(view.passive) == [2]


def test_a_silent_contact_that_answers_a_probe_is_asked_for_a_link() -> None:
    """It may be the bridge between two islands of processes that came up before their contacts did."""
    view, env, _ = hyparview(me=0, **SHUFFLES)
    view.start((2,))
    env.advance(2_000_000)
    view.on_neighbour(7, Neighbour(Priority.LOW))
    env.take()
    view.asked.clear()
    view.on_shuffle_reply(2, ShuffleReply(()))
    assert env.effects == [Send(2, Neighbour(Priority.LOW))]


def test_probing_forgets_no_other_lost_peer() -> None:
    view, env, _ = hyparview(active=[1, 2, 3], active_size=1, expansion=3.0, lost_size=2, **SHUFFLES)
    view.start(())
    view.on_link_down(2)
    view.on_link_down(3)
    env.advance(5 * PERIOD)
    assert sorted(view.lost) == [2, 3]


# Widening


def test_a_wider_view_has_one_link_more_to_a_passive_peer() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, expansion=2.0)
    view.widen()
    assert env.effects == [Send(9, Neighbour(Priority.HIGH))]


def test_a_full_view_gives_up_a_link_once_the_wider_one_is_there() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, expansion=1.0)
    view.widen()
    assert env.take() == [Send(9, Neighbour(Priority.HIGH))]
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert env.effects == [Send(1, Disconnect(leaving=False)), Close(1), Open(9)]


def test_widening_needs_somebody_who_was_not_asked_and_did_not_refuse() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, expansion=2.0)
    view.widen()
    view.widen()
    view.on_neighbour_reply(9, NeighbourReply(False))
    view.widen()
    assert env.effects == [Send(9, Neighbour(Priority.HIGH))]


@pytest.mark.parametrize(("refresh", "links"), [(0.0, 0), (1.0, 1)])
def test_the_view_is_refreshed_with_the_given_chance(refresh: float, links: int) -> None:
    settings = SHUFFLES | {"refresh": refresh}
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, expansion=2.0, **settings)
    shuffles_due(view)
    assert len(env.sent(Neighbour)) == links


# Islands


def island(walks: tuple[Shuffle, ...] = ()) -> tuple[HyParView, RecordingEnv]:
    """Three shuffle periods of a process with neighbours 1 and 2, in each of which these walks come over its links."""
    view, env, _ = hyparview(active=[1, 2], passive=[9], active_size=2, expansion=2.0, **ISLAND)
    view.start(())
    for _ in range(3):
        for walk in walks:
            view.on_shuffle(2, walk)
        view.on_shuffle_reply(9, ShuffleReply(()))  # the passive peer is up
        env.advance(PERIOD)
    return view, env


def test_a_process_that_hears_no_walk_from_beyond_its_neighbours_exchanges_a_neighbour() -> None:
    view, env = island(walks=(Shuffle(1, 0, ()),))
    assert env.sent(Neighbour) == [Send(9, Neighbour(Priority.HIGH))]
    env.take()
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert len(env.sent(Disconnect)) == 1
    assert len(view.peers()) == 2
    assert 9 in view.peers()


def test_a_process_that_hears_walks_from_farther_away_keeps_its_neighbours() -> None:
    _, env = island(walks=(Shuffle(7, 0, ()),))
    assert env.sent(Neighbour) == []


def test_a_probe_that_comes_straight_from_its_origin_is_no_walk_from_farther_away() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[9], active_size=2, expansion=2.0, **ISLAND)
    view.start(())
    for _ in range(3):
        view.on_shuffle(9, Shuffle(9, 0, ()))
        view.on_shuffle_reply(9, ShuffleReply(()))
        env.advance(PERIOD)
    assert env.sent(Neighbour) == [Send(9, Neighbour(Priority.HIGH))]


def test_an_exchange_gives_up_no_neighbour_that_the_layer_above_uses() -> None:
    view, env = island()
    view.listener.uses = lambda peer: True  # type: ignore[method-assign]
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert env.sent(Disconnect) == []
    assert sorted(view.peers()) == [1, 2, 9]


def test_a_refused_exchange_gives_up_nobody() -> None:
    view, env = island()
    view.on_neighbour_reply(9, NeighbourReply(False))
    assert env.sent(Disconnect) == []
    assert sorted(view.peers()) == [1, 2]


def test_a_walk_is_never_longer_than_ours_whatever_its_sender_says() -> None:
    view, env, _ = hyparview(active=[1, 2], shuffle_walk_length=4, join_walk_length=5)
    view.on_shuffle(1, Shuffle(9, 64, (9,)))
    view.on_forward_join(1, ForwardJoin(9, 64))
    assert env.effects[-2:] == [Send(2, Shuffle(9, 3, (9,))), Send(2, ForwardJoin(9, 4))]
