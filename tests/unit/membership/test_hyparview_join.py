"""Joining: the contact's part, the walks, and the joiner's perseverance."""

from typing import Any

from epicast.core.recording import Close, Open, Send
from epicast.membership.hyparview_messages import Disconnect, ForwardJoin, Join, Neighbour, NeighbourReply, Priority
from tests.support.neighbours import hyparview

WALK = 6  # the default length of a join walk
TIMEOUT = 1_500_000  # the default patience with a request
QUIET: dict[str, Any] = {"keep_alive_us": 40_000_000, "silence_us": 80_000_000, "shuffle_interval_us": 40_000_000}


# The joiner


def test_a_process_without_contacts_waits() -> None:
    view, env, _ = hyparview()
    view.start(())
    assert env.effects == []


def test_a_process_asks_its_contact_to_let_it_in() -> None:
    view, env, _ = hyparview()
    view.start((1,))
    assert env.effects == [Send(1, Join())]


def test_a_process_is_not_its_own_contact() -> None:
    view, env, _ = hyparview(me=0)
    view.start((0,))
    assert env.effects == []


def test_one_contact_out_of_several_is_asked() -> None:
    view, env, _ = hyparview()
    view.start((1, 2, 3))
    assert len(env.effects) == 1
    assert env.effects[0] in [Send(peer, Join()) for peer in (1, 2, 3)]


def test_a_joiner_that_is_let_in_adds_its_contact_and_keeps_the_sample() -> None:
    view, env, ear = hyparview(active_size=1)
    view.start((1,))
    env.take()
    view.on_neighbour_reply(1, NeighbourReply(True, (2, 3)))
    assert env.effects == [Open(1)]
    assert ear.notes == [("up", 1)]
    assert sorted(view.passive) == [2, 3]


def test_a_joiner_with_room_asks_those_of_the_sample() -> None:
    view, env, _ = hyparview(active_size=2)
    view.start((1,))
    env.take()
    view.on_neighbour_reply(1, NeighbourReply(True, (2,)))
    assert env.effects == [Open(1), Send(2, Neighbour(Priority.LOW))]


def test_a_joiner_tries_its_contact_again_and_again() -> None:
    view, env, _ = hyparview(**QUIET)
    view.start((1,))
    env.advance(3 * TIMEOUT)
    assert env.effects == [Send(1, Join())] * 4


def test_a_joiner_whose_contact_is_silent_tries_the_others() -> None:
    view, env, _ = hyparview(**QUIET)
    view.start((1, 2))
    env.advance(20 * TIMEOUT)
    assert {effect.to for effect in env.sent(Join)} == {1, 2}


def test_a_joiner_keeps_trying_although_others_joined_through_it() -> None:
    view, env, _ = hyparview(active_size=1, **QUIET)
    view.start((1,))
    view.on_join(5, Join())
    env.take()
    env.advance(2 * TIMEOUT)
    assert env.sent(Join) == [Send(1, Join())] * 2


def test_a_joiner_stops_trying_once_its_contact_answers() -> None:
    view, env, _ = hyparview(active_size=1, **QUIET)
    view.start((1,))
    env.advance(TIMEOUT)
    view.on_neighbour_reply(1, NeighbourReply(True))
    env.take()
    env.advance(10 * TIMEOUT)
    assert env.sent(Join) == []


def test_a_process_that_lost_everyone_joins_again() -> None:
    view, env, _ = hyparview(active=[1])
    view.on_link_down(1)
    assert env.effects == [Close(1), Send(1, Join())]


# The contact


def test_the_first_joiner_is_added_and_told_so() -> None:
    view, env, ear = hyparview(me=0)
    view.on_join(1, Join())
    assert env.effects == [Send(1, NeighbourReply(True)), Open(1)]
    assert ear.notes == [("up", 1)]


def test_a_joiner_gets_a_sample_of_both_views() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[3, 4])
    view.on_join(9, Join())
    [reply] = env.sent(NeighbourReply)
    assert reply.to == 9
    assert reply.msg.accepted  # type: ignore[attr-defined]
    assert sorted(reply.msg.sample) == [1, 2, 3, 4]  # type: ignore[attr-defined]


def test_the_sample_fits_into_a_passive_view() -> None:
    view, env, _ = hyparview(active=[1, 2, 3], passive=[4, 5], passive_size=2)
    view.on_join(9, Join())
    [reply] = env.sent(NeighbourReply)
    assert len(reply.msg.sample) == 2  # type: ignore[attr-defined]


def test_walks_start_on_the_other_links() -> None:
    view, env, _ = hyparview(active=[1, 2])
    view.on_join(9, Join())
    assert sorted(env.sent(ForwardJoin)) == [Send(1, ForwardJoin(9, WALK)), Send(2, ForwardJoin(9, WALK))]


def test_a_contact_above_target_starts_no_more_walks_than_the_joiner_has_room_for() -> None:
    """E-H2: with the contact's own link that makes `active_size` neighbours."""
    view, env, _ = hyparview(active=range(1, 8), active_size=4)
    view.on_join(9, Join())
    walks = env.sent(ForwardJoin)
    assert len(walks) == len({walk.to for walk in walks}) == 3


def test_a_full_contact_evicts_one_to_let_the_joiner_in() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, expansion=1.0)
    view.on_join(9, Join())
    assert env.effects == [
        Send(9, NeighbourReply(True, (1,))),
        Send(1, Disconnect(leaving=False)),
        Close(1),
        Open(9),
    ]
    assert ear.notes == [("down", 1, "alive"), ("up", 9)]


def test_a_neighbour_that_joins_again_is_answered_and_stays_one() -> None:
    view, env, ear = hyparview(active=[1])
    view.on_join(1, Join())
    assert env.effects == [Send(1, NeighbourReply(True))]
    assert list(view.active) == [1]
    assert ear.notes == []


# The walk


def test_a_walk_goes_on_with_one_step_less() -> None:
    view, env, _ = hyparview(active=[1, 2])
    view.on_forward_join(1, ForwardJoin(9, 5))
    assert env.effects == [Send(2, ForwardJoin(9, 4))]
    assert list(view.passive) == []


def test_a_walk_never_goes_back_nor_to_the_joiner() -> None:
    view, env, _ = hyparview(active=[1, 2, 9])
    for _ in range(20):
        view.on_forward_join(1, ForwardJoin(9, 5))
    assert env.effects == [Send(2, ForwardJoin(9, 4))] * 20


def test_a_walk_that_ran_out_offers_a_link() -> None:
    view, env, _ = hyparview(active=[1, 2])
    view.on_forward_join(1, ForwardJoin(9, 0))
    assert env.effects == [Send(9, Neighbour(Priority.WALK))]


def test_a_walk_that_cannot_go_on_offers_a_link() -> None:
    """E-CLON-9: the only neighbour is the one that it came from."""
    view, env, _ = hyparview(active=[1])
    view.on_forward_join(1, ForwardJoin(9, 5))
    assert env.effects == [Send(9, Neighbour(Priority.WALK))]


def test_a_walk_leaves_the_joiner_in_a_passive_view_on_its_way() -> None:
    view, env, _ = hyparview(active=[1, 2], passive_walk_at=3)
    view.on_forward_join(1, ForwardJoin(9, 4))
    assert list(view.passive) == []
    view.on_forward_join(1, ForwardJoin(9, 3))
    assert list(view.passive) == [9]
    assert env.effects == [Send(2, ForwardJoin(9, 3)), Send(2, ForwardJoin(9, 2))]


def test_a_walk_that_ends_at_a_neighbour_of_the_joiner_changes_nothing() -> None:
    view, env, _ = hyparview(active=[1, 9])
    view.on_forward_join(1, ForwardJoin(9, 0))
    assert env.effects == []


def test_a_walk_that_ends_where_the_joiner_was_asked_already_changes_nothing() -> None:
    view, env, _ = hyparview(active=[1])
    view.on_forward_join(1, ForwardJoin(9, 0))
    view.on_forward_join(1, ForwardJoin(9, 0))
    assert env.effects == [Send(9, Neighbour(Priority.WALK))]


def test_a_walk_that_comes_to_the_joiner_itself_ends() -> None:
    view, env, _ = hyparview(me=9, active=[1, 2])
    view.on_forward_join(1, ForwardJoin(9, 0))
    view.on_forward_join(1, ForwardJoin(9, 5))
    assert env.effects == []


def test_walks_for_invented_joiners_do_not_pile_up_requests() -> None:
    view, env, _ = hyparview(active=[1], active_size=4)
    for joiner in range(100, 200):
        view.on_forward_join(1, ForwardJoin(joiner, 0))
    assert len(view.asked) == len(env.effects) == view.size_max == 8


def test_a_link_exists_only_once_the_joiner_accepts_it() -> None:
    """E-CLON-10: what a walk adds is symmetric from the start."""
    view, env, ear = hyparview(active=[1])
    view.on_forward_join(1, ForwardJoin(9, 0))
    assert ear.notes == []
    env.take()
    view.on_neighbour_reply(9, NeighbourReply(True))
    assert env.effects == [Open(9)]
    assert ear.notes == [("up", 9)]
