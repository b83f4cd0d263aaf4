"""What both clocks do: questions come before answers, or are given up."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.core.ordered import Ordered
from epicast.core.recording import Record
from epicast.core.records import Kind
from epicast.ordering import trailer
from epicast.ordering.causal import CausalConfig
from epicast.ordering.predecessors import Predecessors
from tests.support.ordering import Process

PATIENCE, SETTLE, STABLE = 1_000, 100, 10_000
SENDER = 99
CLOCKS = ("barrier", "vector")

both = pytest.mark.parametrize("clock", CLOCKS)


def process(clock: str, me: str, at_us: int = 0, **settings: Any) -> Process:
    times = {"patience_us": PATIENCE, "settle_us": SETTLE, "stable_us": STABLE}
    return Process(clock, me, at_us, **{**times, **settings})


def trio(clock: str, **settings: Any) -> tuple[Process, Process, Process]:
    a, b, c = (process(clock, me, **settings) for me in "ABC")
    return a, b, c


def acquainted(clock: str, **settings: Any) -> tuple[Process, Process, Process]:
    """All have delivered A's first message."""
    a, b, c = trio(clock, **settings)
    first = a.publish()
    b.receive(first)
    c.receive(first)
    return a, b, c


def question_and_answer(a: Process, b: Process) -> tuple[Ordered, Ordered]:
    question = a.publish(payload=b"question")
    b.receive(question)
    return question, b.publish(payload=b"answer")


@both
def test_ones_own_is_delivered_at_once_and_bare(clock: str) -> None:
    a, _, _ = trio(clock)
    event = a.publish(payload=b"payload")
    assert event.payload.startswith(b"payload" + bytes([trailer.CAUSAL]))
    assert (a.got, a.payloads, a.senders) == ([("A", 0)], [b"payload"], ["A"])
    assert a.env.records == []
    assert a.env.timers == []


@both
def test_what_comes_in_order_is_delivered_as_it_comes(clock: str) -> None:
    a, b, c = trio(clock)
    c.receive(*question_and_answer(a, b))
    assert (c.got, c.payloads, c.senders) == ([("A", 0), ("B", 0)], [b"question", b"answer"], [SENDER] * 2)
    assert c.env.timers == []


@both
def test_an_answer_waits_for_its_question(clock: str) -> None:
    a, b, c = acquainted(clock)
    question, answer = question_and_answer(a, b)
    c.receive(answer)
    assert c.got == [("A", 0)]
    c.receive(question)
    assert c.got == [("A", 0), ("A", 1), ("B", 0)]
    assert c.env.records == []
    assert c.room.waiting == c.room.awaited == {}  # type: ignore[attr-defined]


@both
def test_all_topics_are_one_domain(clock: str) -> None:
    a, b, c = trio(clock)
    first, question = a.publish("t"), a.publish("u")
    b.receive(first, question)
    answer = b.publish("v")
    c.receive(first, answer)
    assert c.got == [("A", 0)]
    c.receive(question)
    assert c.got == [("A", 0), ("A", 1), ("B", 0)]


@both
def test_a_message_waits_for_the_one_before_it_of_its_publisher(clock: str) -> None:
    a, _, c = trio(clock)
    first, second, third = (a.publish() for _ in range(3))
    c.receive(first, third)
    assert c.got == [("A", 0)]
    c.receive(second)
    assert c.got == [("A", 0), ("A", 1), ("A", 2)]


@both
def test_the_first_message_of_somebody_may_be_slower_than_an_answer_to_it(clock: str) -> None:
    """E-PS-15."""
    a, b, c = trio(clock)
    question, answer = question_and_answer(a, b)
    c.receive(answer)
    c.advance(SETTLE - 1)
    assert c.got == []
    c.receive(question)
    assert c.got == [("A", 0), ("B", 0)]
    assert c.env.records == []


@both
def test_messages_that_are_not_related_do_not_wait_for_each_other(clock: str) -> None:
    a, b, c = trio(clock)
    lost = a.publish()
    a.publish()
    assert lost
    c.receive(b.publish(), b.publish())
    assert c.got == [("B", 0), ("B", 1)]


@both
def test_a_delivery_looks_only_at_those_that_wait_for_it(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = trio(clock)
    questions, others = [a.publish()], [process(clock, f"D{number}") for number in range(5)]
    c.receive(questions[0], b.publish())
    for other in others:
        questions.append(a.publish())
        other.receive(*questions)
        c.receive(other.publish())
    assert len(c.room.waiting) == 5

    judged: list[object] = []
    judge = Predecessors.judge

    def watched(room: Any, held: Any) -> Any:
        judged.append(held.event.source)
        return judge(room, held)

    monkeypatch.setattr(Predecessors, "judge", watched)
    c.receive(b.publish())
    assert judged == ["B"]
    for number, question in enumerate(questions[1:]):
        judged.clear()
        c.receive(question)
        assert judged == ["A", f"D{number}"]
    assert c.room.waiting == {}


@both
def test_one_timer_serves_all_waits(clock: str) -> None:
    a, b, c = acquainted(clock)
    for _ in range(5):
        _, answer = question_and_answer(a, b)
        c.receive(answer)
        c.advance(SETTLE // 4)
    assert len(c.room.waiting) == 5
    assert len(c.env.timers) == 1


@both
def test_who_has_left_waits_for_nothing(clock: str) -> None:
    a, b, c = trio(clock)
    c.receive(question_and_answer(a, b)[1])
    c.order.leave()
    c.advance(STABLE)
    assert c.got == []
    assert c.env.records == []


@both
def test_who_answers_at_once_answers_all_that_it_has_delivered_so_far(clock: str) -> None:
    a, b, c = trio(clock)
    questions = [a.publish() for _ in range(3)]
    answers: list[Ordered] = []
    deliver = b.room.deliver

    def answer(event: Any, sender: Any) -> None:
        deliver(event, sender)
        if sender != "B":
            answers.append(b.publish())

    b.room.deliver = answer
    b.receive(questions[0], questions[2], questions[1])
    assert b.got == [("A", 0), ("B", 0), ("A", 1), ("B", 1), ("A", 2), ("B", 2)]
    c.receive(*answers[::-1], *questions[::-1])
    assert c.got == b.got
    assert c.env.records == []


# Nonsense


@both
@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        (b"", "a trailer of 0 bytes in a payload of 0"),
        (trailer.add(b"x", bytes([trailer.FIFO])), "not a causal header"),
        (trailer.add(b"x", bytes([trailer.CAUSAL])), "not a "),
        (trailer.add(b"x", bytes([trailer.CAUSAL]) + b"\xc1"), "not a "),
        (trailer.add(b"x", bytes([trailer.CAUSAL]) + b"\x91" * 5_000), "not a "),
        (trailer.add(b"x", bytes([trailer.CAUSAL, 0x95, 9]) + bytes(10)), "not a "),
    ],
)
def test_nonsense_is_recorded_and_dropped(clock: str, payload: bytes, detail: str) -> None:
    c = process(clock, "C")
    c.receive(Ordered("A", 5, "t", 1, payload))
    assert c.got == []
    (row,) = c.env.records
    assert row == Record(Kind.NONSENSE, SENDER, "A", 5, topic="t", detail=row.detail)
    assert row.detail.startswith(detail)
    assert c.room.streams == {}


def test_clocks_are_not_mistaken_for_each_other() -> None:
    for mine, other in (CLOCKS, CLOCKS[::-1]):
        c = process(mine, "C")
        c.receive(process(other, "A").publish())
        assert c.got == []
        assert len(c.nonsense) == 1


@both
def test_ones_own_from_somebody_else_is_nonsense(clock: str) -> None:
    c, twin = process(clock, "C"), process(clock, "C")
    c.receive(twin.publish())
    assert c.got == []
    assert [row.detail for row in c.nonsense] == ["our own, from somebody else"]


@both
def test_a_number_that_waits_already_is_nonsense(clock: str) -> None:
    a, _, c = trio(clock)
    first, _, third = a.publish(), a.publish(), a.publish()
    c.receive(first, third, Ordered("A", 77, "t", 1, third.payload))
    assert c.nonsense == [Record(Kind.NONSENSE, SENDER, "A", 77, topic="t", detail="a number twice")]


def test_whoever_misses_what_is_not_named_any_more_must_have_given_it_up() -> None:
    with pytest.raises(ConfigError, match=r"^stable_us: expected more than patience_us = 10 us, got 10 us$"):
        CausalConfig(patience_us=10, settle_us=1, stable_us=10)
