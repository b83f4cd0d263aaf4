"""Vector clocks by differences: what a message tells, and what becomes of publishers that cannot be read any more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from epicast.core.errors import EpicastError
from epicast.core.ordered import Ordered
from epicast.core.recording import Record
from epicast.core.records import Kind
from epicast.ordering import trailer
from epicast.ordering.vector import NUMBER_MAX, Header
from tests.support.ordering import Process

PATIENCE, SETTLE, STABLE = 1_000, 100, 10_000
SENDER = 99
UNREADABLE = "lost and all that follow: a clock cannot be read without those before it"


def process(me: str, at_us: int = 0, **settings: Any) -> Process:
    times = {"patience_us": PATIENCE, "settle_us": SETTLE, "stable_us": STABLE}
    return Process("vector", me, at_us, **{**times, **settings})


def several(names: str) -> list[Process]:
    return [process(name) for name in names]


def header(event: Ordered) -> tuple[Any, ...]:
    said = msgspec.msgpack.decode(trailer.split(event.payload)[1][1:], type=Header)
    return said.number, said.grown, dict(zip(said.sources, said.numbers, strict=True))


def said(source: str, number: int, *grown: int, **new: int) -> Ordered:
    encoded = msgspec.msgpack.encode(Header(number, grown, tuple(new), tuple(new.values())))
    return Ordered(source, 100 + number, "t", 1, trailer.add(b"", bytes([trailer.CAUSAL]) + encoded))


def gap(lost: int, source: str, seq: int = -1) -> Record:
    return Record(Kind.GAP, source=source, seq=seq, detail=f"{lost} {UNREADABLE}")


# What is told


def test_a_publisher_is_named_once_and_then_has_a_place() -> None:
    a, b, c, d = several("ABCD")
    d.receive(a.publish(), b.publish())
    told = [d.publish()]
    d.receive(a.publish(), a.publish())
    told.append(d.publish())
    d.receive(c.publish(), b.publish())
    told.append(d.publish())
    assert [header(event) for event in told] == [
        (0, (), {"A": 0, "B": 0}),
        (1, (0, 2), {}),
        (2, (1, 1), {"C": 0}),
    ]


def test_what_has_not_changed_is_not_told() -> None:
    a, b = several("AB")
    b.receive(a.publish())
    b.publish()
    assert header(b.publish()) == (1, (), {})


def test_what_a_message_follows_is_told_though_it_was_given_up_here() -> None:
    """Others have it, and must not deliver it after ours."""
    (d,) = several("D")
    d.receive(said("B", 0, A=0))
    d.advance(SETTLE)
    assert d.got == [("B", 100)]
    assert header(d.publish()) == (0, (), {"A": 0, "B": 0})


def test_a_message_that_was_dressed_but_never_sent_changes_nothing() -> None:
    a, b = several("AB")
    b.receive(a.publish())
    b.order.dress("t", b"not sent")
    assert header(b.publish()) == (0, (), {"A": 0})


def test_a_clock_that_does_not_fit_is_refused_with_advice() -> None:
    d = process("D")
    for number in range(200):
        d.receive(said(chr(0x10000) * 117 + f"{number:03}", 0))
    assert d.order.has_room("t")
    with pytest.raises(
        EpicastError, match=r"^a clock with 200 new entries does not fit: use barriers for such groups$"
    ):
        d.publish()


# Reading


def test_differences_are_read_in_the_order_of_their_publisher_whatever_comes_first() -> None:
    a, b, c = several("ABC")
    questions = [a.publish() for _ in range(3)]
    answers = []
    for question in questions:
        b.receive(question)
        answers.append(b.publish())
    c.receive(questions[0], answers[0], answers[2], answers[1])
    assert c.got == [("A", 0), ("B", 0)]
    c.receive(questions[2])
    assert c.got == [("A", 0), ("B", 0)]
    c.receive(questions[1])
    assert c.got == [("A", 0), ("B", 0), ("A", 1), ("B", 1), ("A", 2), ("B", 2)]
    assert c.env.records == []


def test_indirect_predecessors_are_known_too() -> None:
    """m1 <- m2 <- m3, and m2 is lost: with barriers nobody would know that m3 follows m1."""
    a, b, c, d = several("ABCD")
    first = a.publish()
    b.receive(first)
    second = b.publish()
    c.receive(first, second)
    third = c.publish()
    d.receive(third)
    d.advance(SETTLE - 1)
    d.receive(first)
    assert d.got == [("A", 0)]
    d.advance(1)
    assert d.got == [("A", 0), ("C", 0)]


# Publishers that cannot be read


def test_who_meets_a_publisher_in_mid_stream_delivers_nothing_of_it_and_says_so_once() -> None:
    a, _, c = several("ABC")
    events = [a.publish() for _ in range(6)]
    c.receive(events[2], events[3])
    c.advance(SETTLE)
    c.receive(*events[4:], events[0])
    c.advance(PATIENCE)
    assert c.got == []
    assert c.env.records == [gap(2, "A", seq=2)]
    assert c.room.late == 3
    assert c.room.waiting == {}


def test_who_has_the_beginning_in_time_reads_all() -> None:
    a, _, c = several("ABC")
    events = [a.publish() for _ in range(3)]
    c.receive(events[2], events[1])
    c.advance(SETTLE - 1)
    c.receive(events[0])
    assert c.got == [("A", 0), ("A", 1), ("A", 2)]


def test_a_message_that_is_lost_silences_its_publisher_and_nobody_else() -> None:
    a, b, c = several("ABC")
    events = [a.publish() for _ in range(4)]
    b.receive(*events)
    c.receive(events[0], *events[2:], b.publish(), b.publish())
    c.advance(PATIENCE)
    assert c.got == [("A", 0), ("B", 0), ("B", 1)]
    assert c.env.records == [gap(3, "A", seq=2)]
    c.receive(a.publish(), b.publish(), events[1])
    assert c.got == [("A", 0), ("B", 0), ("B", 1), ("B", 2)]
    assert len(c.env.records) == 1


def test_it_is_the_one_on_whom_all_wait_that_is_silenced() -> None:
    """D waits for C, C for B, and B for something of A's that does not come."""
    (e,) = several("E")
    for source in "ABCD":
        e.receive(said(source, 0))
    e.receive(said("D", 1, C=1), said("C", 1, B=1), said("B", 1, A=2), said("A", 2))
    e.advance(PATIENCE)
    assert e.got[4:] == [("B", 101), ("C", 101), ("D", 101)]
    assert e.env.records == [gap(2, "A", seq=102)]


def test_at_a_cap_names_that_nobody_knows_are_not_waited_for() -> None:
    e = process("E", waiting_max=1)
    e.receive(said("A", 0, X=3), said("B", 0, X=4))
    assert e.got == [("A", 100)]
    assert len(e.room.waiting) == 1


def test_who_has_been_there_for_long_knows_what_it_lost() -> None:
    e = process("E")
    e.advance(STABLE + PATIENCE)
    e.receive(said("B", 0, A=4))
    e.advance(PATIENCE - 1)
    assert e.got == []
    e.advance(1)
    assert e.got == [("B", 100)]
    assert e.env.records == [Record(Kind.GAP, source="A", detail="1 lost")]


def test_publishers_above_the_cap_are_dropped() -> None:
    e = process("E", vector_max=2)
    e.receive(said("A", 0), said("B", 0), said("C", 0), said("A", 1))
    assert e.got == [("A", 100), ("B", 100), ("A", 101)]
    assert e.nonsense == [Record(Kind.NONSENSE, SENDER, "C", 100, topic="t", detail="too many publishers")]


# Hostile messages


@pytest.mark.parametrize(
    "event",
    [
        said("A", 1, 0, 1),  # a place that was never told of
        said("A", 1, A=0),  # itself
        said("A", 1, E=0),  # what we have not published
        said("A", 1, **{f"X{number}": 0 for number in range(9)}),
    ],
)
def test_a_clock_that_cannot_be_silences_its_publisher(event: Ordered) -> None:
    e = process("E", vector_max=8)
    e.receive(said("A", 0), said("B", 0), event, said("A", 2), said("B", 1))
    e.advance(PATIENCE)
    assert e.got == [("A", 100), ("B", 100), ("B", 101)]
    assert [row.kind for row in e.env.records] == [Kind.NONSENSE, Kind.GAP]
    assert e.gaps == [("A", f"1 {UNREADABLE}")]


def test_an_entry_cannot_grow_above_the_highest_number() -> None:
    e = process("E")
    e.receive(said("B", 0), said("B", 1), said("A", 0, B=1), said("A", 1, 0, NUMBER_MAX))
    assert e.got == [("B", 100), ("B", 101), ("A", 100)]
    assert [row.detail for row in e.nonsense] == ["a clock with an entry that cannot be"]


@pytest.mark.parametrize("words", [((0,), (), ()), ((), ("B",), ())])
def test_a_clock_with_half_an_entry_is_nonsense(words: tuple[Any, Any, Any]) -> None:
    e = process("E")
    encoded = msgspec.msgpack.encode(Header(0, *words))
    e.receive(Ordered("A", 0, "t", 1, trailer.add(b"", bytes([trailer.CAUSAL]) + encoded)))
    assert [row.detail for row in e.nonsense] == ["not a clock"]
    assert e.room.streams == {}


def test_two_that_wait_for_each_other_do_not_wait_for_ever() -> None:
    e = process("E")
    e.receive(said("A", 0), said("B", 0), said("A", 1, B=1), said("B", 1, A=1))
    e.advance(PATIENCE)
    assert e.room.waiting == e.room.awaited == {}  # type: ignore[attr-defined]
    assert e.got == [("A", 100), ("B", 100), ("A", 101)]
    assert e.gaps == [("B", f"1 {UNREADABLE}")]
