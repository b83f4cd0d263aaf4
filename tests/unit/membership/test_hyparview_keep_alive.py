"""Keep-alives: failure detection, round trips, one-sided links, surplus links."""

from typing import Any

import pytest

from epicast.core.message import Position
from epicast.core.recording import Close, Open, Send
from epicast.membership.hyparview_messages import Disconnect, KeepAlive, KeepAliveAck, Neighbour, Priority, Shuffle
from tests.support.neighbours import hyparview

PERIOD = 1_000_000
SILENCE = 3_500_000
HERE = (Position((7, 0), (7, 3)),)
ALIVE: dict[str, Any] = {"shuffle_interval_us": 3_600_000_000}  # nothing but keep-alives happens by itself


def test_every_neighbour_gets_a_keep_alive_each_period() -> None:
    view, env, _ = hyparview(active=[1, 2], active_size=2, **ALIVE)
    view.start(())
    env.advance(PERIOD)
    first, second = env.take()
    assert first.msg == second.msg == KeepAlive(first.msg.sent_us, 2)  # type: ignore[union-attr]
    assert {first.to, second.to} == {1, 2}  # type: ignore[union-attr]
    env.advance(PERIOD)
    assert len(env.take()) == 2


def test_a_keep_alive_tells_what_the_layer_above_wants_known() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, **ALIVE)
    ear.told = HERE
    view.start(())
    env.advance(PERIOD)
    [sent] = env.sent(KeepAlive)
    assert sent.msg.positions == HERE  # type: ignore[attr-defined]


def test_a_keep_alive_is_answered_with_its_own_time_stamp() -> None:
    view, env, ear = hyparview(active=[1])
    view.on_keep_alive(1, KeepAlive(123, 4))
    assert env.effects == [Send(1, KeepAliveAck(123))]
    assert ear.notes == []


def test_what_a_keep_alive_tells_is_handed_up_within_a_period() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, **ALIVE)
    view.start(())
    view.on_keep_alive(1, KeepAlive(0, 4, HERE))
    env.advance(PERIOD)
    assert ear.notes == [("heard", 1, HERE)]
    env.advance(PERIOD)
    assert ear.notes == [("heard", 1, HERE)]


def test_of_two_keep_alives_within_a_period_the_later_one_counts() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, **ALIVE)
    view.start(())
    there = (Position((7, 0), (7, 4, 3)),)
    view.on_keep_alive(1, KeepAlive(0, 4, HERE))
    view.on_keep_alive(1, KeepAlive(1, 4, there))
    env.advance(PERIOD)
    assert ear.notes == [("heard", 1, there)]


def test_what_a_neighbour_told_before_it_went_is_not_handed_up() -> None:
    view, env, ear = hyparview(active=[1, 2], active_size=1, **ALIVE)
    view.start(())
    view.on_keep_alive(1, KeepAlive(0, 4, HERE))
    view.on_link_down(1)
    env.advance(PERIOD)
    assert ear.notes == [("down", 1, "gone")]


# Round trips


def test_a_keep_alive_without_a_time_stamp_is_not_answered_and_yet_heard() -> None:
    view, env, _ = hyparview(active=[1], active_size=1, **ALIVE)
    view.start(())
    for _ in range(5):  # longer than silence is borne
        env.advance(PERIOD)
        view.on_keep_alive(1, KeepAlive(0, 4))
    assert env.sent(KeepAliveAck) == []
    assert list(view.peers()) == [1]


def test_answers_are_wanted_until_all_round_trips_are_known_and_then_to_one_keep_alive_of_so_many() -> None:
    view, env, _ = hyparview(active=[1, 2], active_size=2, rtt_every=3, **ALIVE)
    view.start(())

    def wanted() -> bool:
        env.take()
        env.advance(PERIOD)
        first, second = env.sent(KeepAlive)
        assert first.msg == second.msg
        for peer in (1, 2):
            view.on_keep_alive(peer, KeepAlive(0, 2))
        return bool(first.msg.sent_us)  # type: ignore[attr-defined]

    assert [wanted() for _ in range(4)] == [True] * 4
    view.on_keep_alive_ack(1, KeepAliveAck(env.now_us() - 10))
    assert wanted()  # the other one is still to be measured
    view.on_keep_alive_ack(2, KeepAliveAck(env.now_us() - 10))
    assert [wanted() for _ in range(7)] == [True, False, False, True, False, False, True]


def test_there_is_no_round_trip_before_the_first_answer() -> None:
    view, _, _ = hyparview(active=[1])
    assert view.rtt_us(1) is None
    assert view.rtt_us(9) is None


def test_the_first_round_trip_is_taken_as_it_is() -> None:
    view, env, _ = hyparview(active=[1])
    env.advance(50_000)
    view.on_keep_alive_ack(1, KeepAliveAck(10_000))
    assert view.rtt_us(1) == 40_000


def test_later_round_trips_count_one_part_in_eight() -> None:
    view, env, _ = hyparview(active=[1])
    env.advance(80_000)
    view.on_keep_alive_ack(1, KeepAliveAck(0))
    view.on_keep_alive_ack(1, KeepAliveAck(80_000))
    assert view.rtt_us(1) == 70_000
    view.on_keep_alive_ack(1, KeepAliveAck(80_000))
    assert view.rtt_us(1) == 61_250


def test_a_time_stamp_from_the_future_is_ignored() -> None:
    view, env, _ = hyparview(active=[1])
    env.advance(1_000)
    view.on_keep_alive_ack(1, KeepAliveAck(1_001))
    view.on_keep_alive_ack(1, KeepAliveAck((1 << 63) - 1))
    assert view.rtt_us(1) is None


def test_an_answer_from_a_stranger_is_ignored() -> None:
    view, env, ear = hyparview(active=[1])
    view.on_keep_alive_ack(9, KeepAliveAck(0))
    assert env.effects == ear.notes == []


def test_a_neighbour_that_comes_back_is_measured_anew() -> None:
    view, _, _ = hyparview(active=[1, 2], active_size=1)
    view.on_keep_alive_ack(1, KeepAliveAck(0))
    view.on_disconnect(1, Disconnect(leaving=False))
    view.on_neighbour(1, Neighbour(Priority.LOW))
    assert view.rtt_us(1) is None


# Silence


def test_a_silent_neighbour_is_taken_for_failed() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, **ALIVE)
    view.start(())
    env.advance(SILENCE)
    assert ear.notes == []
    env.advance(PERIOD)
    assert ear.notes == [("down", 1, "gone")]
    assert Close(1) in env.effects
    assert list(view.lost) == [1]


@pytest.mark.parametrize("sign", ["keep-alive", "answer"])
def test_a_neighbour_that_is_heard_is_alive(sign: str) -> None:
    view, env, ear = hyparview(active=[1], active_size=1, **ALIVE)
    view.start(())
    for _ in range(10):
        env.advance(2 * PERIOD)
        if sign == "keep-alive":
            view.on_keep_alive(1, KeepAlive(0, 1))
        else:
            view.on_keep_alive_ack(1, KeepAliveAck(0))
    assert ear.notes == []


def test_an_answer_from_the_future_is_no_sign_of_life() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, **ALIVE)
    view.start(())
    for _ in range(3):
        env.advance(2 * PERIOD)
        view.on_keep_alive_ack(1, KeepAliveAck(1 << 40))
    assert ear.notes == [("down", 1, "gone")]


def test_a_silent_neighbour_is_replaced() -> None:
    view, env, _ = hyparview(active=[1, 2], passive=[9], active_size=2, **ALIVE)
    view.start(())
    for _ in range(5):
        env.advance(PERIOD)
        view.on_keep_alive(2, KeepAlive(0, 2))
    assert env.sent(Neighbour) == [Send(9, Neighbour(Priority.LOW))]


def test_a_process_below_target_asks_those_it_has_heard_of_meanwhile() -> None:
    view, env, _ = hyparview(active=[1], passive=[9], active_size=2, **ALIVE)
    view.start(())
    env.advance(PERIOD)
    assert env.sent(Neighbour) == [Send(9, Neighbour(Priority.LOW))]
    assert env.sent(Shuffle) == []


def test_a_process_that_knows_too_few_shuffles_ahead_of_time() -> None:
    view, env, _ = hyparview(me=0, active=[1], active_size=2, **ALIVE)
    view.start(())
    env.advance(PERIOD)
    assert env.sent(Shuffle) == [Send(1, Shuffle(0, 6, (0, 1)))]


# One-sided links


def test_a_stranger_that_holds_us_for_a_neighbour_becomes_one_where_there_is_room() -> None:
    view, env, ear = hyparview(active=[1], active_size=2)
    view.on_keep_alive(9, KeepAlive(0, 1))
    assert env.effects == [Open(9)]
    assert ear.notes == [("up", 9)]


def test_a_stranger_that_holds_us_for_a_neighbour_is_told_otherwise_at_the_target() -> None:
    view, env, ear = hyparview(active=[1], active_size=1, expansion=2.0)
    view.on_keep_alive(9, KeepAlive(0, 1, HERE))
    assert env.effects == [Send(9, Disconnect(leaving=False))]
    assert ear.notes == []


def test_a_stranger_that_we_asked_becomes_a_neighbour() -> None:
    """Its keep-alive overtook its acceptance."""
    view, env, _ = hyparview(active=[1], passive=[9], active_size=1, expansion=2.0)
    view.widen()
    env.take()
    view.on_keep_alive(9, KeepAlive(0, 1))
    assert env.effects == [Open(9)]
    env.take()
    env.advance(10_000_000)
    assert env.effects == []
    assert list(view.lost) == []


# Surplus links


def surplus(**settings: Any) -> Any:
    """Three neighbours where one is wanted: 1 and 2 have more than they want as well."""
    view, env, ear = hyparview(active=[1, 2, 3], active_size=1, expansion=3.0, **(ALIVE | settings))
    view.start(())
    for peer, degree in ((1, 3), (2, 2), (3, 1)):
        view.on_keep_alive(peer, KeepAlive(0, degree))
    env.take()
    return view, env, ear


def test_a_link_that_is_surplus_at_both_ends_is_given_up() -> None:
    _, env, ear = surplus(shed=1.0)
    ear.used = (2,)
    env.advance(PERIOD)
    assert env.effects[:2] == [Send(1, Disconnect(leaving=False)), Close(1)]
    assert ear.notes == [("down", 1, "alive")]


def test_a_link_that_something_depends_on_is_kept() -> None:
    view, env, ear = surplus(shed=1.0)
    ear.used = (1, 2)
    env.advance(PERIOD)
    assert len(view.active) == 3


def test_a_link_to_a_neighbour_that_has_not_told_its_degree_is_kept() -> None:
    view, env, _ = hyparview(active=[1, 2], active_size=1, shed=1.0, **ALIVE)
    view.start(())
    env.advance(PERIOD)
    assert len(view.active) == 2


def test_surplus_links_are_given_up_with_the_given_chance() -> None:
    view, env, _ = surplus(shed=0.0)
    env.advance(PERIOD)
    assert len(view.active) == 3


def test_no_link_is_given_up_at_the_target() -> None:
    view, env, _ = hyparview(active=[1], active_size=1, shed=1.0, **ALIVE)
    view.start(())
    view.on_keep_alive(1, KeepAlive(0, 8))
    env.advance(PERIOD)
    assert list(view.active) == [1]
