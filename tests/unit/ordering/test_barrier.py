"""Causal barriers: which messages one names, what happens to who lacks some of them, and how long that may take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from epicast.core.errors import EpicastError
from epicast.core.ordered import Ordered
from epicast.core.recording import Record
from epicast.core.records import Kind
from epicast.ordering import trailer
from epicast.ordering.barrier import STAMP_MAX, Header
from tests.support.ordering import Process

PATIENCE, SETTLE, STABLE = 1_000, 100, 10_000
SENDER = 99
OLD = STABLE + PATIENCE  # old enough to know what was owed to it


def process(me: str, at_us: int = 0, **settings: Any) -> Process:
    times = {"patience_us": PATIENCE, "settle_us": SETTLE, "stable_us": STABLE}
    return Process("barrier", me, at_us, **{**times, **settings})


def several(names: str, age_us: int = 0, **settings: Any) -> list[Process]:
    found = [process(name, **settings) for name in names]
    for each in found:
        each.advance(age_us)
    return found


def header(event: Ordered) -> Header:
    return msgspec.msgpack.decode(trailer.split(event.payload)[1][1:], type=Header)


def names(event: Ordered) -> dict[Any, int]:
    said = header(event)
    return dict(zip(said.sources, said.numbers, strict=True))


def said(
    source: str, number: int, barrier: dict[Any, int] | None = None, lead: int = 1, payload: bytes = b""
) -> Ordered:
    named = barrier or {}
    encoded = msgspec.msgpack.encode(Header(number, lead, tuple(named), tuple(named.values())))
    return Ordered(source, 100 + number, "t", 1, trailer.add(payload, bytes([trailer.CAUSAL]) + encoded))


def gap(detail: str, source: str, seq: int = -1) -> Record:
    return Record(Kind.GAP, source=source, seq=seq, detail=detail)


def chain(a: Process, b: Process, c: Process) -> tuple[Ordered, Ordered, Ordered]:
    """B answers A, and C answers B."""
    first = a.publish()
    b.receive(first)
    second = b.publish()
    c.receive(first, second)
    return first, second, c.publish()


# What is named


def test_only_direct_predecessors_are_named() -> None:
    first, second, third = chain(*several("ABC"))
    assert [names(event) for event in (first, second, third)] == [{}, {"A": 0}, {"B": 0}]


def test_of_one_publisher_only_the_latest_is_named() -> None:
    a, b = several("AB")
    b.receive(*[a.publish() for _ in range(3)])
    assert names(b.publish()) == {"A": 2}


def test_ones_own_message_before_goes_without_saying() -> None:
    a, b = several("AB")
    a.publish()
    assert names(a.publish()) == {}
    a.receive(b.publish())
    assert names(a.publish()) == {"B": 0}
    assert names(a.publish()) == {}


def test_messages_under_way_at_the_same_time_are_all_named() -> None:
    a, b, c, d = several("ABCD")
    d.receive(a.publish(), b.publish(), c.publish())
    assert names(d.publish()) == {"A": 0, "B": 0, "C": 0}


def test_what_was_delivered_long_ago_is_not_named_any_more() -> None:
    a, b, c = several("ABC")
    c.receive(a.publish())
    c.advance(1)
    c.receive(b.publish())
    c.advance(STABLE - 1)
    assert names(c.publish()) == {"B": 0}


def test_a_publisher_waits_while_it_has_too_much_to_name() -> None:
    a, b, c = several("ABC", barrier_max=1)
    c.receive(a.publish())
    assert c.order.has_room("t")
    c.advance(1)
    c.receive(b.publish())
    assert not c.order.has_room("t")
    with pytest.raises(EpicastError, match=r"^too many messages to name: raise barrier_max, or wait for room$"):
        c.publish()
    c.advance(STABLE - 1)
    assert c.order.has_room("t")
    assert names(c.publish()) == {"B": 0}


def test_a_publisher_also_has_room_again_when_somebody_names_what_it_would_have_to() -> None:
    a, b, c = several("ABC", barrier_max=1)
    events = a.publish(), b.publish()
    c.receive(*events)
    assert not c.order.has_room("t")
    a.receive(events[1])
    c.receive(a.publish())
    assert c.order.has_room("t")
    assert names(c.publish()) == {"A": 1}


def test_who_never_publishes_does_not_keep_what_it_would_have_to_name() -> None:
    d = process("D", streams_max=3)
    for number, source in enumerate("ABCEF"):
        d.receive(said(source, 0, lead=0))
        assert len(d.room.barrier) == min(number + 1, 3)  # type: ignore[attr-defined]
    assert not d.order.has_room("t")
    d.receive(said("G", 0, {"E": 0, "F": 0}))
    assert list(d.room.barrier) == ["C", "G"]  # type: ignore[attr-defined]
    assert not d.order.has_room("t")  # nobody has named those of A and B
    d.advance(STABLE)
    assert d.order.has_room("t")


def test_names_that_are_too_long_for_a_header_need_room_too() -> None:
    """120 letters of four bytes each, from 200 publishers."""
    c = process("C")
    longest = [chr(0x10000) * 117 + f"{number:03}" for number in range(200)]
    for name in longest:
        c.receive(said(name, 0, lead=0))
    assert len(c.got) == 200
    assert not c.order.has_room("t")
    c.advance(STABLE)
    assert c.order.has_room("t")


def test_stamps_are_higher_than_all_that_their_publisher_has_heard_of() -> None:
    a, b, c = several("ABC")
    first, second, third = chain(a, b, c)
    assert [header(event).lead for event in (first, second, third)] == [0, 2, 3]
    assert [header(c.publish()).lead for _ in range(2)] == [3, 3]
    a.receive(said("Z", 5, {"Y": 9}, lead=50))  # heard of, though not delivered
    assert header(a.publish()).lead == 55


# Given up


def test_a_question_is_given_up_when_patience_is_over() -> None:
    a, b, c = several("ABC")
    c.receive(a.publish())
    b.receive(said("A", 0), a.publish())
    c.receive(b.publish())
    c.advance(PATIENCE - 1)
    assert c.got == [("A", 0)]
    c.advance(1)
    assert c.got == [("A", 0), ("B", 0)]
    assert c.env.records == [gap("1 lost", "A")]


def test_a_hole_that_is_filled_late_is_no_gap() -> None:
    (d,) = several("D")
    d.receive(said("B", 0), said("C", 0, {"B": 1}))
    d.advance(PATIENCE - 1)
    d.receive(said("B", 1))
    d.advance(PATIENCE)
    assert d.got == [("B", 100), ("B", 101), ("C", 100)]
    assert d.env.records == []


def test_a_late_predecessor_of_one_that_was_given_up_is_too_late() -> None:
    """E-PS-16: m1 <- m2 <- m3, and m3 does not name m1."""
    (d,) = several("D")
    d.receive(said("A", 0, lead=5), said("B", 0, lead=5), said("C", 0, {"B": 1}, lead=8))
    d.advance(PATIENCE)
    assert d.got == [("A", 100), ("B", 100), ("C", 100)]
    d.receive(said("A", 1, {}, lead=5))
    assert d.got == [("A", 100), ("B", 100), ("C", 100)]
    assert d.env.records == [gap("1 lost", "B"), gap("1 came too late", "A", 101)]
    assert d.room.late == 1


def test_what_might_come_before_one_that_was_given_up_goes_first() -> None:
    """E-PS-16 again: m1 is there, but waits for something else that does not come either."""
    (d,) = several("D")
    for source in "ABC":
        d.receive(said(source, 0))
    d.receive(said("C", 1, {"B": 1}, lead=9))
    d.advance(PATIENCE // 2)
    d.receive(said("A", 2, {}, lead=4))
    d.advance(PATIENCE // 2)
    assert d.got[3:] == [("A", 102), ("C", 101)]
    assert d.env.records == [gap("1 lost", "A", 102), gap("1 lost", "B")]


def test_what_has_a_higher_stamp_may_still_come_when_something_is_given_up() -> None:
    (d,) = several("D")
    for source in "ABC":
        d.receive(said(source, 0))
    d.receive(said("C", 1, {"B": 1}, lead=4))
    d.advance(PATIENCE // 2)
    d.receive(said("A", 2, {}, lead=9))
    d.advance(PATIENCE // 2)
    assert d.got[3:] == [("C", 101)]
    d.receive(said("A", 1, {}, lead=9))
    assert d.got[3:] == [("C", 101), ("A", 101), ("A", 102)]


def shaken() -> Process:
    """It has delivered something with stamp 50 without what that follows."""
    (d,) = several("D")
    d.receive(said("B", 0), said("C", 0, {"B": 1}, lead=50))
    d.advance(PATIENCE)
    assert d.room.floor == 49  # type: ignore[attr-defined]
    return d


def test_one_who_had_heard_of_nothing_is_not_held_to_be_late() -> None:
    d = shaken()
    d.receive(said("N", 0, lead=0), said("N", 1, lead=0))
    assert d.got[-2:] == [("N", 100), ("N", 101)]


def test_nor_is_one_who_answers_it() -> None:
    """What follows something that was delivered since cannot come before what was delivered then."""
    d = shaken()
    d.receive(
        said("N", 0, lead=0), said("M", 0, {"N": 0}, lead=2), said("M", 1, lead=2), said("L", 0, {"M": 1}, lead=9)
    )
    assert d.got[-4:] == [("N", 100), ("M", 100), ("M", 101), ("L", 100)]
    d.receive(said("K", 0, {"B": 0}, lead=2))
    assert d.got[-1] == ("L", 100)
    assert d.gaps[-1] == ("K", "1 came too late")


def test_who_stands_on_what_was_given_up_is_held_until_others_can_have_come() -> None:
    d = shaken()
    d.receive(said("E", 0, {"B": 1}, lead=60))
    d.advance(SETTLE - 1)
    d.receive(said("F", 0, lead=55))
    assert d.got[-1] == ("F", 100)
    d.advance(1)
    assert d.got[-2:] == [("F", 100), ("E", 100)]


def test_who_stands_on_what_was_given_up_waits_for_those_that_may_come_before_it() -> None:
    d = shaken()
    d.receive(said("E", 0, {"B": 1}, lead=60), said("F", 0, {"B": 2}, lead=55))
    d.advance(SETTLE)
    assert len(d.room.waiting) == 2
    d.receive(said("B", 2, lead=51))
    assert len(d.room.waiting) == 3  # it follows what was given up itself
    d.advance(SETTLE)
    assert d.got[-3:] == [("B", 102), ("F", 100), ("E", 100)]


# Publishers that are not known


def test_a_newcomer_owes_nothing_from_before_its_time() -> None:
    d = process("D", at_us=5_000)
    d.receive(said("C", 7, {"A": 3, "B": 4}, lead=20), said("C", 8, lead=20))
    d.advance(SETTLE - 1)
    assert d.got == []
    d.advance(1)
    assert d.got == [("C", 107), ("C", 108)]
    assert d.env.records == []


def test_what_a_newcomer_did_not_wait_for_is_too_late() -> None:
    d = process("D", at_us=5_000)
    d.receive(said("C", 7, {"A": 0}, lead=20))
    d.advance(SETTLE)
    d.receive(said("A", 0, lead=0), said("A", 1, lead=30))
    assert d.got == [("C", 107)]
    d.advance(SETTLE)
    assert d.got == [("C", 107), ("A", 101)]
    assert d.env.records == [gap("1 came too late", "A", 100)]


def test_streams_met_in_mid_stream_begin_in_the_order_of_their_stamps() -> None:
    d = process("D", at_us=5_000)
    d.receive(said("C", 7, lead=20))
    d.advance(SETTLE // 2)
    d.receive(said("A", 5, lead=10))
    d.advance(SETTLE // 2)
    assert d.got == []
    d.advance(SETTLE)
    assert d.got == [("A", 105), ("C", 107)]


def test_who_has_been_there_for_long_waits_for_longer_and_knows_what_it_lost() -> None:
    (d,) = several("D", OLD)
    d.receive(said("B", 0, {"A": 0}), said("C", 0, {"A": 0}), said("B", 1, {"A": 2}))
    d.advance(PATIENCE - 1)
    assert d.got == []
    d.advance(1)
    assert d.got == [("B", 100), ("C", 100), ("B", 101)]
    assert d.env.records == [gap("1 lost", "A"), gap("2 lost", "A")]
    d.receive(said("A", 1, lead=0))
    assert len(d.env.records) == 2  # it was said
    assert d.room.late == 1


def test_names_of_nobody_are_forgotten_at_the_cap() -> None:
    (d,) = several("D", streams_max=2)
    d.receive(said("B", 0, {"W": 1, "X": 1, "Y": 1}))
    d.advance(SETTLE)
    assert d.got == [("B", 100)]
    assert list(d.room.unmet) == ["X", "Y"]  # type: ignore[attr-defined]


# Hostile messages


@pytest.mark.parametrize(
    "event",
    [
        said("A", 0, {"A": 0}),  # itself
        said("A", 0, {"A": 7}),
        said("A", 0, {"D": 0}),  # what we have not published
        said("A", 0, {7: 0}),  # an id of another run
        said("A", 0, dict.fromkeys([f"X{number}" for number in range(257)], 1)),
        said("A", STAMP_MAX, lead=1),
    ],
)
def test_what_cannot_be_is_nonsense(event: Ordered) -> None:
    d = process("D")
    d.receive(event)
    d.advance(PATIENCE)
    assert d.got == []
    assert [row.kind for row in d.env.records] == [Kind.NONSENSE]
    assert d.room.streams == {}


def test_a_barrier_with_more_names_than_numbers_is_nonsense() -> None:
    d = process("D")
    encoded = msgspec.msgpack.encode(Header(0, 0, ("A", "B"), (1,)))
    d.receive(Ordered("C", 0, "t", 1, trailer.add(b"", bytes([trailer.CAUSAL]) + encoded)))
    assert [row.detail for row in d.nonsense] == ["not a barrier"]


def test_two_that_wait_for_each_other_go_when_patience_is_over() -> None:
    d = process("D")
    d.receive(said("A", 0), said("B", 0), said("A", 1, {"B": 1}), said("B", 1, {"A": 1}))
    d.advance(PATIENCE - 1)
    assert len(d.room.waiting) == 2
    d.advance(1)
    assert d.room.waiting == d.room.awaited == {}  # type: ignore[attr-defined]
    assert d.got[2:] == [("A", 101)]
    assert d.gaps == [("B", "1 lost")]


def test_the_highest_number_harms_nobody_else() -> None:
    highest = STAMP_MAX - 1
    d = process("D")
    d.receive(said("A", 0), said("B", 0), said("A", highest), said("B", 1, {"A": highest}, lead=STAMP_MAX - 1))
    d.advance(PATIENCE)
    assert d.got == [("A", 100), ("B", 100), ("A", 100 + highest), ("B", 101)]
    assert d.gaps == [("A", f"{highest - 1} lost")]
    assert header(d.publish()).lead == STAMP_MAX
    assert header(d.publish()).lead == STAMP_MAX - 1
    d.receive(said("C", 0, {"B": 1}, lead=STAMP_MAX))
    assert d.got[-1] == ("C", 100)


def test_caps_hold_whatever_comes() -> None:
    d = process("D", waiting_max=5, ahead_max=3, streams_max=4)
    for source in "ABCEFG":
        for number in (9, 3, 7, 5, 1):
            d.receive(said(source, number, {"Z": number, "Y": 3}, lead=10 - number))
            assert len(d.room.waiting) <= 5
            assert len(d.room.streams) <= 4
    d.advance(PATIENCE)
    assert d.room.waiting == d.room.awaited == {}  # type: ignore[attr-defined]
