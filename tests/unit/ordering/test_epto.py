"""The order of EpTO, round by round: figures 5.2 and 5.6, E-I1, E-I5, E-I8, E-I9, E-I10 and the errata E-E4, E-E5."""

import pytest

from epicast.core.errors import ConfigError
from epicast.core.recording import Record, RecordingEnv
from epicast.core.records import Kind
from epicast.dissemination.ball_clock import LogicalClock
from epicast.dissemination.ball_keys import make_key
from epicast.dissemination.ball_messages import Ball
from epicast.dissemination.flood import Flood, FloodConfig
from epicast.ordering.epto import Epto, EptoConfig
from epicast.stacks import stack as stacks
from tests.support.neighbours import Members
from tests.support.rounds import Process

P, Q = 1, 2


class Hasty(LogicalClock):
    stable_after = 1  # what would do with a global clock


def pair(**settings: object) -> tuple[Process, Process]:
    given = {"rounds": 2, "fanout": 1, **settings}
    return Process(P, (Q,), **given), Process(Q, (P,), **given)


def come(process: Process, ttl: int, *keys: bytes, clock: int = 1000, topic: str = "t") -> None:
    process.balls.on_ball(9, Ball(clock, ((ttl, dict.fromkeys(keys, (topic, b"x"))),)))


# Figures


@pytest.mark.parametrize(("arrives_in", "delivered_in"), [(3, 6), (4, 7)])
def test_figure_5_6(arrives_in: int, delivered_in: int) -> None:
    """q publishes in round 0; p, which has not heard of it, in round 2, at the same logical time. p's comes first. Two
    times TTL rounds are enough for q to know."""
    p, q = pair()
    q.balls.broadcast("t", b"e")
    from_p: list[Ball] = []
    from_q: list[Ball] = []
    for number in range(9):
        if number == 2:
            p.balls.broadcast("t", b"e'")
        if number == 3:
            for ball in from_q:
                p.balls.on_ball(Q, ball)
        if number == arrives_in:
            for ball in from_p[:1]:
                q.balls.on_ball(P, ball)
        from_p += p.round()
        thrown = q.round()
        from_q += thrown if number == 0 else []
    assert p.got == [(6, P, 0), (6, Q, 0)]
    assert q.got == [(delivered_in, P, 0), (delivered_in, Q, 0)]


def test_figure_5_6_with_half_the_time_has_a_hole_but_no_inversion() -> None:
    p, q = pair()
    for process in (p, q):
        process.balls.clock = Hasty(process.env)  # type: ignore[arg-type]
    q.balls.broadcast("t", b"e")
    thrown: list[Ball] = []
    for number in range(9):
        if number == 2:
            p.balls.broadcast("t", b"e'")
        if number == 3:
            for ball in thrown:
                q.balls.on_ball(P, ball)
        thrown += p.round()
        q.round()
    assert q.got == [(2, Q, 0)]
    assert Record(Kind.GAP, source=P, seq=0, topic="t", detail="1 late") in q.env.records


def test_figure_5_2_a_missing_event_is_allowed_and_an_inversion_never_happens() -> None:
    """E-I9. Whatever comes in whichever round, what is delivered is in one order."""
    one, two = Process(8, (9,), rounds=2, fanout=1), Process(9, (8,), rounds=2, fanout=1)
    first, second, third = (make_key(ts, 3, ts) for ts in (1, 2, 3))
    for key in (first, second, third):
        come(one, 1, key)
    for key in (third, second):  # the first never came
        come(two, 1, key)
    for _ in range(8):
        one.round()
        two.round()
    assert [seq for _, _, seq in one.got] == [1, 2, 3]
    assert [seq for _, _, seq in two.got] == [2, 3]


# When it is delivered


@pytest.mark.parametrize(("clock", "rounds"), [("global", 3), ("logical", 6)])
def test_an_own_event_is_delivered_after_its_rounds_and_not_earlier(clock: str, rounds: int) -> None:
    """E-I10: published before round 0 ends, it is one round old then."""
    process = Process(P, (Q,), rounds=3, fanout=1, clock=clock)
    process.balls.broadcast("t", b"x")
    for _ in range(10):
        process.round()
    assert process.got == [(rounds, P, 0)]


def test_an_event_that_comes_back_older_is_delivered_sooner() -> None:
    """E-E15."""
    process = Process(P, (Q,), rounds=3, fanout=1)
    process.balls.broadcast("t", b"x")
    process.round()
    come(process, 3, make_key(1, P, 0))
    for _ in range(6):
        process.round()
    assert process.got == [(5, P, 0)]


def test_an_event_waits_for_all_before_it_and_is_then_delivered_with_them() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    late, early = make_key(7, 3, 0), make_key(5, 4, 0)
    come(process, 1, late)
    for _ in range(3):
        process.round()
    come(process, 1, early)
    for _ in range(5):
        process.round()
    assert process.got == [(6, 4, 0), (6, 3, 0)]
    assert process.epto.order.pending == {}  # E-I5


# What is taken


@pytest.mark.parametrize(
    ("key", "taken"),
    [
        (make_key(5, 2, 9), False),  # belongs before
        (make_key(5, 3, 0), False),  # the same
        (make_key(5, 3, 1), True),  # E-E8: the same time and source
        (make_key(5, 4, 0), True),  # E-E5: the same time, a higher source
        (make_key(6, 0, 0), True),
        (make_key(4, 9, 9), False),
    ],
    ids=["before", "same", "next number", "next source", "later", "earlier"],
)
def test_only_what_belongs_behind_the_last_delivered_event_is_taken(key: bytes, taken: bool) -> None:
    """E-E4, E-E5: by the whole key."""
    process = Process(P, (Q,), rounds=2, fanout=1)
    come(process, 2, make_key(5, 3, 0))
    for _ in range(5):
        process.round()
    assert process.got == [(3, 3, 0)]
    come(process, 1, key)
    process.round()
    assert (key in process.epto.order.pending) == taken


def test_events_of_one_time_are_delivered_by_source_and_number() -> None:
    """E-E5 at the other guard: one that is not stable holds up only what belongs behind it."""
    process = Process(P, (Q,), rounds=2, fanout=1)
    come(process, 2, make_key(5, 3, 0), make_key(5, 3, 2), make_key(5, 9, 0))
    process.round()
    process.round()
    come(process, 1, make_key(5, 3, 1))
    for _ in range(8):
        process.round()
    assert process.got == [(3, 3, 0), (5, 3, 1), (5, 3, 2), (5, 9, 0)]


def test_a_late_event_is_lost_and_said_to_be_lost_once() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    come(process, 2, make_key(5, 3, 0))
    for _ in range(5):
        process.round()
    for _ in range(2):
        come(process, 1, make_key(4, 3, 8))
        process.round()
    assert process.got == [(3, 3, 0)]
    assert process.env.records == [Record(Kind.GAP, source=3, seq=8, topic="t", detail="1 late")]


def test_a_late_event_is_still_thrown_on() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    come(process, 2, make_key(5, 3, 0))
    for _ in range(5):
        process.round()
    come(process, 1, make_key(4, 3, 8))
    assert [ttl for ball in process.round() for ttl, _ in ball.levels] == [2]


def test_a_late_event_may_be_a_correction_instead() -> None:
    """Unconscious eventual consistency."""
    process = Process(P, (Q,), rounds=2, fanout=1, late="correct")
    come(process, 2, make_key(5, 3, 0))
    for _ in range(5):
        process.round()
    for _ in range(2):
        come(process, 1, make_key(4, 3, 8))
        process.round()
    assert [(event.source, event.seq) for event in process.env.corrected] == [(3, 8)]
    assert process.got == [(3, 3, 0)]


def test_copies_of_what_was_delivered_are_no_late_events() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    come(process, 2, make_key(5, 3, 0))
    for _ in range(5):
        process.round()
        come(process, 1, make_key(5, 3, 0))
    assert process.got == [(3, 3, 0)]
    assert process.env.records == []


# Topics


@pytest.mark.parametrize(("scope", "order"), [("topic", [(3, 3), (6, 4)]), ("all", [(6, 4), (6, 3)])])
def test_topics_do_not_wait_for_each_other_unless_they_share_one_order(
    scope: str, order: list[tuple[int, int]]
) -> None:
    process = Process(P, (Q,), rounds=2, fanout=1, scope=scope)
    come(process, 2, make_key(7, 3, 0), topic="a")
    for _ in range(3):
        process.round()
    come(process, 1, make_key(5, 4, 0), topic="b")
    for _ in range(5):
        process.round()
    assert [(number, source) for number, source, _ in process.got] == order


def test_a_topic_that_is_forgotten_never_goes_back() -> None:
    """Its order begins again behind all that was delivered of forgotten topics."""
    process = Process(P, (Q,), rounds=1, fanout=1)
    process.epto.order.config = EptoConfig(topics_max=1)
    come(process, 1, make_key(5, 3, 0), topic="a")
    for _ in range(4):
        process.round()
    come(process, 1, make_key(6, 3, 1), topic="b")
    for _ in range(4):
        process.round()
    come(process, 1, make_key(4, 3, 7), make_key(8, 3, 2), topic="a")
    for _ in range(4):
        process.round()
    assert [seq for _, _, seq in process.got] == [0, 1, 2]
    assert len(process.epto.order.lines) == 1


# Before its turn


def test_an_application_may_look_at_what_waits_and_how_probable_it_is() -> None:
    process = Process(P, (Q,), rounds=3, fanout=1)
    come(process, 1, make_key(5, 3, 0), make_key(6, 4, 0))
    process.round()
    seen = [process.epto.waiting()]
    for _ in range(3):
        process.round()
        seen.append(process.epto.waiting())
    assert [[each.event.source for each in look] for look in seen] == [[3, 4]] * 4
    odds = [look[0].probability for look in seen]
    assert odds == sorted(odds)
    assert 0.0 <= odds[0] < odds[-1] <= 1.0


def test_what_was_taken_early_is_not_delivered_again_and_the_trace_says_both() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    key = make_key(5, 3, 0)
    come(process, 1, key)
    process.round()
    taken = process.epto.order.take_early(key)
    assert taken is not None
    assert (taken.source, taken.payload) == (3, b"x")
    assert process.epto.order.take_early(key) is None
    assert process.epto.waiting() == []
    for _ in range(5):
        process.round()
    assert process.got == []
    assert [record.kind for record in process.env.records] == [Kind.EARLY, Kind.DELIVER]


# Limits


def test_what_does_not_fit_is_given_up_and_publishers_wait_before_that() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    process.epto.order.config = EptoConfig(pending_max=4)
    process.balls.met = True
    assert process.epto.has_room("t")
    come(process, 1, *(make_key(5, 3, seq) for seq in range(6)))
    process.round()
    assert len(process.epto.order.pending) == 4
    assert not process.epto.has_room("t")
    assert [record.detail for record in process.env.records] == ["1 above pending_max"] * 2


def test_payloads_that_wait_are_bounded_in_bytes() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    process.epto.order.config = EptoConfig(pending_bytes_max=2)
    come(process, 1, *(make_key(5, 3, seq) for seq in range(3)))
    process.round()
    assert process.epto.order.bytes == 2
    assert [record.detail for record in process.env.records] == ["1 above pending_bytes_max"]
    for _ in range(5):
        process.round()
    assert process.epto.order.bytes == 0


def test_epto_needs_its_balls() -> None:
    env, members = RecordingEnv(0), Members(())
    order = Epto(env, EptoConfig(), members, lambda event, sender: None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="use epto-ids"):
        order.attach(Flood(env, FloodConfig(), members, order.receive))  # type: ignore[arg-type]


def test_a_stack_may_leave_the_order_out() -> None:
    assert stacks.load("spontaneous").ordering is None
    assert stacks.load("epto").ordering is not None


# Processes that stood still throw old balls

LONG_US = 60_000_000


@pytest.mark.parametrize("late", ["drop", "correct"])
def test_a_delivered_event_that_comes_again_after_a_minute_is_neither_late_nor_corrected(late: str) -> None:
    process = Process(P, (Q,), rounds=2, fanout=1, late=late)
    come(process, 2, make_key(5, 3, 0), make_key(6, 3, 1), make_key(7, 4, 0))
    for _ in range(5):
        process.round()
    for _ in range(3):
        process.env.advance(LONG_US)
        process.round()
    come(process, 1, make_key(5, 3, 0), make_key(6, 3, 1), make_key(7, 4, 0))
    for _ in range(5):
        process.round()
    assert [(source, seq) for _, source, seq in process.got] == [(3, 0), (3, 1), (4, 0)]
    assert process.env.records == []
    assert process.env.corrected == []


def test_a_late_event_that_comes_again_after_a_minute_is_not_told_again() -> None:
    process = Process(P, (Q,), rounds=2, fanout=1)
    come(process, 2, make_key(5, 3, 1))
    for _ in range(5):
        process.round()
    for _ in range(3):
        come(process, 1, make_key(4, 3, 8))
        process.round()
        process.env.advance(LONG_US)
        process.round()
    assert process.env.records == [Record(Kind.GAP, source=3, seq=8, topic="t", detail="1 late")]
