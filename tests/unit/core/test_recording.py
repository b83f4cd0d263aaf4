import pytest

from epicast.core.env import Env
from epicast.core.ids import NOBODY
from epicast.core.message import Message
from epicast.core.recording import Close, Open, Record, RecordingEnv, Send
from epicast.core.records import Kind


class Ping(Message, tag=1_000_010):
    number: int


class Pong(Message, tag=1_000_011):
    number: int


def test_it_is_an_env() -> None:
    env: Env = RecordingEnv(me=3)
    assert env.me == 3
    assert env.now_us() == 0


def test_sends_and_links_are_written_down_in_order() -> None:
    env = RecordingEnv()
    env.open(2)
    env.send(1, Ping(7))
    env.send_many([4, 3], Ping(8))
    env.close(2)
    assert env.effects == [Open(2), Send(1, Ping(7)), Send(4, Ping(8)), Send(3, Ping(8)), Close(2)]


def test_taking_the_effects_leaves_none() -> None:
    env = RecordingEnv()
    env.send(1, Ping(7))
    assert env.take() == [Send(1, Ping(7))]
    assert env.take() == []
    env.open(1)
    assert env.take() == [Open(1)]


def test_sends_can_be_asked_for_by_kind() -> None:
    env = RecordingEnv()
    env.open(5)
    env.send(1, Ping(7))
    env.send(2, Pong(8))
    assert env.sent(Pong) == [Send(2, Pong(8))]


def test_messages_of_different_kinds_differ_even_with_equal_fields() -> None:
    assert Send(1, Ping(7)) != Send(1, Pong(7))


def test_rows_of_the_trace_are_kept_apart_from_effects() -> None:
    env = RecordingEnv()
    env.record(Kind.DELIVER, source=4, seq=9, hops=2, topic="t")
    env.record(Kind.REPAIR, peer=5, detail="soft")
    assert env.records == [
        Record(Kind.DELIVER, NOBODY, 4, 9, 2, "t", ""),
        Record(Kind.REPAIR, 5, NOBODY, -1, 0, "", "soft"),
    ]
    assert env.effects == []


def test_equal_seeds_give_equal_chance() -> None:
    assert RecordingEnv(seed=4).rng.random() == RecordingEnv(seed=4).rng.random()
    assert RecordingEnv(seed=4).rng.random() != RecordingEnv(seed=5).rng.random()


def test_timers_fire_in_order_of_time_and_then_of_arming() -> None:
    env, fired = RecordingEnv(), list[object]()
    for name, delay_us in [("late", 20), ("first", 10), ("second", 10), ("now", 0)]:
        env.after(delay_us, fired.append, name)
    assert fired == []
    env.advance(20)
    assert fired == ["now", "first", "second", "late"]


def test_a_timer_sees_the_time_that_it_was_due() -> None:
    env, seen = RecordingEnv(), list[int]()
    env.after(10, lambda: seen.append(env.now_us()))
    env.after(15, lambda: seen.append(env.now_us()))
    env.advance(100)
    assert seen == [10, 15]
    assert env.now_us() == 100


def test_a_timer_waits_for_its_time_and_fires_once() -> None:
    env, fired = RecordingEnv(), list[object]()
    env.after(10, fired.append, 1)
    env.advance(9)
    assert fired == []
    env.advance(1)
    assert fired == [1]
    env.advance(100)
    assert fired == [1]


def test_a_cancelled_timer_does_not_fire() -> None:
    env, fired = RecordingEnv(), list[object]()
    timer = env.after(10, fired.append, 1)
    timer.cancel()
    timer.cancel()
    env.advance(100)
    assert fired == []
    assert env.timers == []


def test_a_timer_may_cancel_another_that_is_due_at_the_same_time() -> None:
    env, fired = RecordingEnv(), list[object]()

    def cancel_all() -> None:
        for timer in env.timers:
            timer.cancel()

    env.after(10, cancel_all)
    env.after(10, fired.append, 2)
    env.advance(10)
    assert fired == []


def test_a_timer_armed_by_a_timer_fires_within_the_same_advance() -> None:
    env, seen = RecordingEnv(), list[int]()

    def arm_another() -> None:
        env.after(5, lambda: seen.append(env.now_us()))

    env.after(10, arm_another)
    env.advance(15)
    assert seen == [15]


def test_a_delay_cannot_be_negative() -> None:
    with pytest.raises(AssertionError):
        RecordingEnv().after(-1, print)
