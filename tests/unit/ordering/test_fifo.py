"""One process that orders what one or two publishers said, by the numbers in their headers."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.errors import ConfigError, EpicastError
from epicast.core.ordered import Ordered
from epicast.core.recording import Record
from epicast.core.records import Kind
from epicast.ordering import trailer
from epicast.ordering.fifo import FifoConfig
from tests.support.ordering import Process

PATIENCE, SETTLE = 1_000, 100
SENDER = 99
HIGHEST = (1 << 63) - 1


def fifo(**settings: Any) -> Process:
    return Process("fifo", 0, **{"patience_us": PATIENCE, "settle_us": SETTLE, **settings})


def header(number: int) -> bytes:
    return bytes([trailer.FIFO]) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def said(number: int, source: int = 7, topic: str = "t", payload: bytes = b"x") -> Ordered:
    """The sequence number is another one than that on the topic, as with publishers of several topics."""
    return Ordered(source, 100 + number, topic, 3, trailer.add(payload, header(number)))


def numbers(process: Process) -> list[int]:
    return [seq - 100 for _, seq in process.got]


def gap(detail: str, seq: int, source: int = 7, topic: str = "t") -> Record:
    return Record(Kind.GAP, source=source, seq=seq, topic=topic, detail=detail)


# Publishing


def test_ones_own_is_delivered_at_once_and_bare() -> None:
    process = fifo()
    event = process.publish("t", b"payload")
    assert event.payload == b"payload\1\0\1"
    assert (process.got, process.payloads, process.senders) == ([(0, 0)], [b"payload"], [0])
    assert process.env.records == []
    assert process.env.timers == []


def test_numbers_count_the_messages_of_a_topic() -> None:
    process = fifo()
    headers = [trailer.split(process.publish(topic).payload)[1] for topic in ("t", "t", "u", "t", "u")]
    assert headers == [header(number) for number in (0, 1, 0, 2, 1)]


def test_a_number_takes_as_few_bytes_as_it_needs() -> None:
    assert [len(header(number)) for number in (0, 1, 255, 256, HIGHEST)] == [1, 2, 2, 3, 9]


def test_a_message_that_was_dressed_but_never_sent_leaves_no_hole() -> None:
    process = fifo()
    process.order.dress("t", b"not sent")
    assert trailer.split(process.publish("t").payload)[1] == header(0)


def test_more_topics_than_numbers_can_be_kept_for_are_refused() -> None:
    process = fifo(topics_max=2)
    for topic in ("t", "u", "t", "u"):
        process.publish(topic)
    with pytest.raises(EpicastError, match=r"^more than 2 topics: raise topics_max, or publish on fewer$"):
        process.publish("v")


def test_there_is_always_room() -> None:
    assert fifo().order.has_room("t")


# In order


def test_what_comes_in_order_is_delivered_as_it_comes() -> None:
    process = fifo()
    for number in range(3):
        process.receive(said(number, payload=b"%d" % number))
        assert process.payloads[-1] == b"%d" % number
    assert process.got == [(7, 100), (7, 101), (7, 102)]
    assert process.senders == [SENDER] * 3
    assert process.env.timers == []


def test_what_comes_early_waits_for_what_lacks() -> None:
    process = fifo()
    process.receive(said(0), said(3), said(2))
    assert numbers(process) == [0]
    process.receive(said(1))
    assert numbers(process) == [0, 1, 2, 3]
    assert process.env.records == []
    assert process.room.waiting == {}
    assert process.room.bytes == 0


def test_streams_do_not_wait_for_each_other() -> None:
    process = fifo()
    process.receive(said(0), said(2), said(0, source=8), said(0, topic="u"), said(1, topic="u"))
    assert process.got == [(7, 100), (8, 100), (7, 100), (7, 101)]


def test_ones_own_number_from_somebody_else_is_nonsense() -> None:
    process = fifo()
    process.receive(said(0, source=0))
    assert process.got == []
    assert [row.detail for row in process.nonsense] == ["our own, from somebody else"]


# Holes


def test_a_hole_that_is_filled_late_is_no_gap() -> None:
    process = fifo()
    process.receive(said(0), said(2))
    process.advance(PATIENCE - 1)
    process.receive(said(1))
    process.advance(PATIENCE)
    assert numbers(process) == [0, 1, 2]
    assert process.env.records == []


def test_a_hole_is_given_up_when_patience_is_over() -> None:
    process = fifo()
    process.receive(said(0), said(4))
    process.advance(PATIENCE - 1)
    assert numbers(process) == [0]
    process.advance(1)
    assert numbers(process) == [0, 4]
    assert process.env.records == [gap("3 lost", seq=104)]


def test_what_comes_after_it_was_given_up_is_dropped_and_counted() -> None:
    process = fifo()
    process.receive(said(0), said(2))
    process.advance(PATIENCE)
    process.receive(said(1), said(3))
    assert numbers(process) == [0, 2, 3]
    assert process.env.records == [gap("1 lost", seq=102)]
    assert process.room.late == 1


def test_who_came_first_shows_all_holes_before_it() -> None:
    """5 came first, so 1, 2 and 4 have been missed for as long, although 3 came only just now."""
    process = fifo()
    process.receive(said(0), said(5))
    process.advance(PATIENCE - 1)
    process.receive(said(3), said(7))
    process.advance(1)
    assert numbers(process) == [0, 3, 5]
    assert process.env.records == [gap("2 lost", seq=103), gap("1 lost", seq=105)]
    process.advance(PATIENCE - 2)
    assert numbers(process) == [0, 3, 5]
    process.advance(1)
    assert numbers(process) == [0, 3, 5, 7]


def test_one_timer_serves_all_waits() -> None:
    process = fifo()
    for source in range(5, 10):
        process.receive(said(0, source), said(2, source))
        process.receive(said(9, source, topic="u"))
        process.advance(10)
    assert len(process.env.timers) == 1
    process.advance(2 * PATIENCE)
    assert process.env.timers == []
    assert len(process.gaps) == 5


def test_who_has_left_waits_for_nothing() -> None:
    process = fifo()
    process.receive(said(0), said(2))
    process.order.leave()
    process.advance(2 * PATIENCE)
    assert numbers(process) == [0]


# Streams that are met after their beginning


def test_who_meets_a_stream_in_mid_stream_begins_with_the_lowest_number_that_comes() -> None:
    process = fifo()
    process.receive(said(12), said(10))
    process.advance(SETTLE - 1)
    process.receive(said(11))
    assert numbers(process) == []
    process.advance(1)
    assert numbers(process) == [10, 11, 12]
    process.receive(said(13))
    assert numbers(process) == [10, 11, 12, 13]
    assert process.env.records == []


def test_a_first_message_that_is_slow_is_not_lost() -> None:
    process = fifo()
    process.receive(said(1), said(3))
    process.advance(SETTLE - 1)
    process.receive(said(0))
    assert numbers(process) == [0, 1]
    process.receive(said(2))
    assert numbers(process) == [0, 1, 2, 3]
    assert process.env.records == []


def test_what_comes_from_before_the_beginning_is_too_late_and_reported() -> None:
    process = fifo()
    process.receive(said(1))
    process.advance(SETTLE)
    process.receive(said(0))
    assert numbers(process) == [1]
    assert process.env.records == [gap("1 came too late", seq=100)]
    assert process.room.late == 1


def test_a_hole_in_what_came_while_the_beginning_was_not_clear_is_a_hole() -> None:
    process = fifo()
    process.receive(said(10), said(12))
    process.advance(SETTLE)
    assert numbers(process) == [10]
    process.advance(PATIENCE - SETTLE)
    assert numbers(process) == [10, 12]
    assert process.env.records == [gap("1 lost", seq=112)]


# Caps


def test_at_the_cap_of_a_stream_its_oldest_hole_is_given_up() -> None:
    process = fifo(ahead_max=2)
    process.receive(said(0), said(2), said(4))
    process.receive(said(0, source=8), said(2, source=8))
    assert len(process.room.waiting) == 3
    process.receive(said(6))
    assert process.got == [(7, 100), (8, 100), (7, 102)]
    assert process.env.records == [gap("1 lost", seq=102)]
    assert len(process.room.waiting) == 3


@pytest.mark.parametrize("caps", [{"waiting_max": 2}, {"waiting_bytes_max": 2 * len(said(1).payload)}])
def test_at_the_cap_of_all_a_hole_of_who_waited_longest_is_given_up(caps: dict[str, int]) -> None:
    process = fifo(**caps)
    process.receive(said(0), said(2), said(0, source=8), said(2, source=8))
    process.receive(said(0, source=9), said(2, source=9))
    assert process.got == [(7, 100), (8, 100), (9, 100), (7, 102)]
    assert process.env.records == [gap("1 lost", seq=102)]
    assert len(process.room.waiting) == 2


def test_a_message_that_is_too_large_to_wait_does_not() -> None:
    process = fifo(waiting_bytes_max=10)
    process.receive(said(0), said(2, payload=bytes(100)))
    assert numbers(process) == [0, 2]
    assert process.env.records == [gap("1 lost", seq=102)]


def test_at_a_cap_a_stream_begins_with_what_came() -> None:
    process = fifo(ahead_max=1)
    process.receive(said(10), said(8))
    assert numbers(process) == [8]
    process.receive(said(9))
    assert numbers(process) == [8, 9, 10]


def test_at_the_cap_of_streams_the_one_silent_for_longest_is_forgotten() -> None:
    process = fifo(streams_max=2)
    process.receive(said(0, source=7), said(0, source=8), said(1, source=7), said(0, source=9))
    assert [source for source, _ in process.room.streams] == [7, 9]
    process.receive(said(2, source=7))
    assert process.got[-1] == (7, 102)
    process.receive(said(1, source=8))
    assert process.got[-1] == (7, 102)  # met in mid-stream again
    process.advance(SETTLE)
    assert process.got[-1] == (8, 101)
    assert process.env.records == []


def test_a_stream_is_not_forgotten_while_something_waits() -> None:
    process = fifo(streams_max=1)
    process.receive(said(0), said(2), said(0, source=8))
    assert process.got == [(7, 100)]
    assert process.nonsense == [Record(Kind.NONSENSE, SENDER, 8, 100, topic="t", detail="too many streams")]
    process.receive(said(1))
    assert numbers(process) == [0, 1, 2]


# Nonsense


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0\0",
        trailer.add(b"x", bytes([trailer.CAUSAL])),
        trailer.add(b"x", bytes([trailer.FIFO]) + (HIGHEST + 1).to_bytes(8, "big")),
        trailer.add(b"x", bytes([trailer.FIFO]) + bytes(9)),
    ],
)
def test_nonsense_is_recorded_and_dropped(payload: bytes) -> None:
    process = fifo()
    process.receive(Ordered(7, 5, "t", 1, payload))
    assert process.got == []
    (row,) = process.env.records
    assert row == Record(Kind.NONSENSE, SENDER, 7, 5, topic="t", detail=row.detail)
    assert row.detail
    assert process.room.streams == {}


def test_a_number_that_waits_already_is_nonsense() -> None:
    process = fifo()
    process.receive(said(0), said(2, payload=b"first"), said(2, payload=b"second"), said(1))
    assert process.payloads == [b"x", b"x", b"first"]
    assert process.nonsense == [Record(Kind.NONSENSE, SENDER, 7, 102, topic="t", detail="a number twice")]


def test_the_highest_number_ends_a_stream_and_harms_no_other() -> None:
    process = fifo()
    process.receive(said(0), said(HIGHEST), said(0, source=8))
    process.advance(PATIENCE)
    assert process.gaps == [(7, f"{HIGHEST - 1} lost")]
    process.receive(said(1), said(1, source=8))
    assert process.got == [(7, 100), (8, 100), (7, 100 + HIGHEST), (8, 101)]
    assert process.room.late == 1


def test_a_beginning_cannot_take_longer_than_a_wait() -> None:
    with pytest.raises(ConfigError, match=r"^settle_us: expected at most patience_us = 5 us, got 6 us$"):
        FifoConfig(patience_us=5, settle_us=6)
