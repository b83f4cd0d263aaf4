"""EpTO whose payloads travel by another dissemination: keys in balls, payloads when they come."""

from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.core.message import Event
from epicast.core.ordered import Ordered
from epicast.core.recording import Record, RecordingEnv
from epicast.core.records import Kind
from epicast.dissemination.ball_keys import make_key
from epicast.dissemination.ball_messages import Ball
from epicast.dissemination.balls import Balls, BallsConfig
from epicast.ordering import trailer
from epicast.ordering.epto_ids import EptoIds, EptoIdsConfig
from epicast.ordering.stable import EptoConfig
from tests.support.neighbours import Members

SECOND = 1_000_000


class Process:
    def __init__(self, me: int = 1, **order: Any) -> None:
        self.env = RecordingEnv(me)
        self.got: list[tuple[int, int, bytes]] = []
        balls = BallsConfig(rounds=2, fanout=1, period_us=100_000)
        config = EptoIdsConfig(balls=balls, order=EptoConfig(**order), payload_wait_us=3 * SECOND)
        self.order = EptoIds(self.env, config, Members((2,)), self._deliver)  # type: ignore[arg-type]
        self.order.balls.met = True

    def _deliver(self, event: Event, sender: int) -> None:
        self.got.append((event.source, event.seq, event.payload))  # type: ignore[arg-type]

    def payload(self, ts: int, source: int, seq: int = 0, body: bytes = b"body", topic: str = "t") -> None:
        dressed = trailer.add(body, bytes([trailer.TOTAL]) + ts.to_bytes(8, "big"))
        self.order.receive(Ordered(source, seq, topic, 1, dressed), 2)

    def key(self, ts: int, source: int, seq: int = 0, ttl: int = 1, topic: str = "t") -> None:
        self.order.on_ball(2, Ball(100, ((ttl, {make_key(ts, source, seq): (topic, b"")}),)))

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.order.balls.end_round()
            self.env.advance(100_000)


def test_a_publication_goes_into_a_ball_as_a_key_alone_and_is_delivered_when_its_turn_comes() -> None:
    process = Process()
    dressed = process.order.dress("t", b"body")
    process.order.receive(Ordered(1, 0, "t", 0, dressed), 1)
    process.order.balls.end_round()
    (sent,) = process.env.sent(Ball)
    assert sent.msg.levels == ((1, {make_key(1, 1, 0): ("t", b"")}),)  # type: ignore[attr-defined]
    assert process.env.records == [Record(Kind.PUBLISH, 1, 1, 0, 0, "t", "1")]
    process.rounds(3)
    assert process.got == []
    process.rounds(1)
    assert process.got == [(1, 0, b"body")]


def test_the_key_may_come_before_the_payload_or_after_it() -> None:
    for key_first in (True, False):
        process = Process()
        for part in (("key", "payload"), ("payload", "key"))[not key_first]:
            getattr(process, part)(5, 3)
            process.rounds(1)
        process.rounds(4)
        assert process.got == [(3, 0, b"body")]


def test_a_payload_whose_key_never_comes_is_delivered_in_order_all_the_same() -> None:
    process = Process()
    process.payload(7, 3)
    process.payload(5, 4)
    process.key(7, 3)
    process.rounds(8)
    assert [source for source, _, _ in process.got] == [4, 3]


def test_what_is_stable_waits_for_its_payload_and_holds_up_what_is_behind_it() -> None:
    process = Process()
    process.key(5, 3)
    process.key(6, 4)
    process.payload(6, 4)
    process.rounds(20)
    assert process.got == []
    process.payload(5, 3)
    process.rounds(1)
    assert [source for source, _, _ in process.got] == [3, 4]


def test_a_payload_that_never_comes_is_given_up_in_the_end() -> None:
    process = Process()
    process.key(5, 3)
    process.key(6, 4)
    process.payload(6, 4)
    process.rounds(40)
    assert process.got == [(4, 0, b"body")]
    assert process.env.records == [Record(Kind.GAP, source=3, seq=0, topic="t", detail="1 without its payload")]
    process.payload(5, 3)
    assert process.got == [(4, 0, b"body")]  # its turn is over


def test_payloads_that_never_come_are_waited_for_all_at_once() -> None:
    """Who comes late lacks many: the wait for one after the other took minutes."""
    process = Process()
    for source in range(3, 23):
        process.key(5, source)
    process.key(6, 30)
    process.payload(6, 30)
    process.rounds(40)
    assert process.got == [(30, 0, b"body")]
    assert len(process.env.records) == 20


def test_a_key_that_somebody_changed_finds_no_payload() -> None:
    """The payload says 9, and a publisher may have signed that; the ball says 5."""
    process = Process()
    process.key(5, 3)
    process.payload(9, 3)
    process.rounds(45)
    assert process.got == [(3, 0, b"body")]
    assert [record.detail for record in process.env.records] == ["1 without its payload"]


def test_the_payload_says_which_topic_it_is_on_and_nobody_else() -> None:
    process = Process()
    topics: list[str] = []
    process.order.order.deliver = lambda event, sender: topics.append(event.topic)
    process.key(5, 3, topic="other")
    process.rounds(1)
    process.payload(5, 3)
    process.rounds(8)
    assert topics == ["t"]
    assert process.order.order.pending == {}
    assert process.order.order.bytes == 0


@pytest.mark.parametrize(
    ("dressed", "what"),
    [
        (b"", "a trailer of 0 bytes in a payload of 0"),
        (trailer.add(b"x", bytes([trailer.FIFO]) + bytes(8)), "not a place in a total order"),
        (trailer.add(b"x", bytes([trailer.TOTAL]) + bytes(7)), "not a place in a total order"),
        (trailer.add(b"x", bytes([trailer.TOTAL]) + b"\xff" * 8), "not a place in a total order"),
    ],
    ids=["nothing", "fifo", "short", "too large"],
)
def test_nonsense_is_dropped(dressed: bytes, what: str) -> None:
    process = Process()
    process.order.receive(Ordered(3, 0, "t", 1, dressed), 2)
    process.rounds(8)
    assert process.got == []
    assert process.env.records == [Record(Kind.NONSENSE, 2, 3, 0, topic="t", detail=what)]


def test_a_time_far_in_the_future_is_not_believed_and_leaves_a_hole_that_is_told_once() -> None:
    """Our own idea of the time may be wrong, if we stood still: the message may be an honest one."""
    process = Process()
    dressed = trailer.add(b"x", bytes([trailer.TOTAL]) + (1 << 61).to_bytes(8, "big"))
    for _ in range(2):
        process.order.receive(Ordered(3, 0, "t", 1, dressed), 2)
    process.rounds(8)
    assert process.got == []
    why = "a time far in the future"
    nonsense = Record(Kind.NONSENSE, 2, 3, 0, topic="t", detail=why)
    assert process.env.records == [nonsense, Record(Kind.GAP, source=3, seq=0, topic="t", detail=f"1 {why}"), nonsense]


# Keys that a member makes up


def test_keys_that_are_made_up_again_and_again_hold_up_nothing_for_ever() -> None:
    """Each belongs before the true event and comes after the last one was given up for stale."""
    process = Process()
    process.payload(50, 3)
    patience_rounds = 30
    for round_ in range(3 * patience_rounds):
        process.key(49, 8, seq=round_)
        process.rounds(1)
    assert process.got == [(3, 0, b"body")]


def test_true_events_in_front_of_one_that_is_overdue_are_delivered_before_it() -> None:
    process = Process()
    process.payload(50, 3)
    for round_ in range(90):
        process.payload(40, 8, seq=round_)
        process.rounds(1)
    assert (3, 0, b"body") in process.got
    before = process.got[: process.got.index((3, 0, b"body"))]
    assert before == sorted(before)
    assert all(source == 8 for source, _, _ in before)


def test_keys_without_payloads_take_no_room_from_publishers_nor_from_true_events() -> None:
    process = Process(pending_max=8)
    for number in range(20):
        process.key(10 + number, 8, seq=number)
    process.rounds(1)
    assert len(process.order.order.pending) == 4
    assert process.order.has_room("t")
    for number in range(4):
        process.payload(40 + number, 3, seq=number)
    assert not process.order.has_room("t")
    process.rounds(60)
    assert [seq for source, seq, _ in process.got if source == 3] == [0, 1, 2, 3]
    assert process.order.has_room("t")
    assert process.order.order._keys_alone == 0


def test_payloads_that_wait_are_bounded() -> None:
    process = Process(pending_bytes_max=10)
    assert process.order.has_room("t")
    process.payload(5, 3, body=bytes(6))
    assert not process.order.has_room("t")
    process.payload(6, 4, body=bytes(6))
    assert [record.detail for record in process.env.records] == ["1 above pending_bytes_max"]
    process.rounds(8)
    assert process.order.has_room("t")
    assert [source for source, _, _ in process.got] == [3]


def test_over_balls_it_would_carry_everything_twice() -> None:
    env, members = RecordingEnv(0), Members(())
    order = EptoIds(env, EptoIdsConfig(), members, lambda event, sender: None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="over balls use epto"):
        order.attach(Balls(env, BallsConfig(), members, order.receive))  # type: ignore[arg-type]


def test_who_stood_still_waits_for_what_it_missed() -> None:
    process = Process()
    process.rounds(3)
    process.env.advance(10 * SECOND)
    process.key(9, 4)
    process.payload(9, 4)
    process.rounds(20)
    assert process.got == []  # stable, but who knows what was before it
    process.payload(5, 3)
    process.rounds(12)
    assert [source for source, _, _ in process.got] == [3, 4]


def test_a_made_up_key_does_not_use_up_the_number_of_the_real_one() -> None:
    """Whoever passes keys on may invent some: too late, or never followed by a payload."""
    process = Process()
    process.payload(5, 3)
    process.rounds(20)
    process.key(4, 3, seq=1)
    process.key(6, 3, seq=2)
    process.rounds(45)
    process.payload(40, 3, seq=1)
    process.payload(41, 3, seq=2)
    process.rounds(45)
    assert [seq for _, seq, _ in process.got] == [0, 1, 2]
