"""The stream of bytes, cut into frames and runs; and what the events of a stream have in common."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.errors import WireError
from epicast.dissemination.brisa_messages import Data, Deactivate
from epicast.dissemination.flood import Gossip
from epicast.wire.codec import Decoder, frame
from epicast.wire.frames import Run, event_frame
from epicast.wire.streams import HEADS_BYTES_MAX, STREAMS_MAX, Head, Known, Shape, Shapes
from tests.live.readers import Readers, taken_apart

LIMIT = 1000
bodies = st.binary(max_size=60).map(lambda rest: b"\x92" + rest)
events = st.tuples(st.integers(0, 2), st.integers(0, 4), st.binary(max_size=60))


def framed(part: bytes | tuple[int, int, bytes]) -> bytes:
    return event_frame(*part) if isinstance(part, tuple) else len(part).to_bytes(4, "big") + part


@given(st.lists(st.one_of(bodies, events), max_size=20), st.lists(st.integers(1, 80), min_size=1, max_size=10))
def test_however_the_bytes_are_split_the_same_frames_come_out(
    parts: list[bytes | tuple[int, int, bytes]], sizes: list[int]
) -> None:
    data, reader, found, at = b"".join(map(framed, parts)), Readers(LIMIT), [], 0
    for number in range(len(data)):
        if at >= len(data):
            break
        size = sizes[number % len(sizes)]
        found += taken_apart(reader.feed(data[at : at + size]))
        at += size
        assert reader.waiting <= LIMIT + 4
    assert found == parts
    assert reader.waiting == 0


def test_events_with_consecutive_numbers_come_as_one_run() -> None:
    data = b"".join(event_frame(7, seq, b"%d" % seq) for seq in (1, 2, 3, 5, 6)) + event_frame(8, 7, b"x")
    runs = Readers(LIMIT).feed(data)
    assert [(run.stream, run.seq, list(run)) for run in runs if isinstance(run, Run)] == [
        (7, 1, [b"1", b"2", b"3"]),
        (7, 5, [b"5", b"6"]),
        (8, 7, [b"x"]),
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        b"\0\0\0\0",
        (LIMIT + 1).to_bytes(4, "big"),
        b"\xff\xff\xff\xff",
        b"\0\0\0\1\xc1",
        (16).to_bytes(4, "big") + b"\xc1" + bytes(15),
        event_frame(1, 1, b"a") + (LIMIT + 1).to_bytes(4, "big") + b"\xc1" + bytes(LIMIT + 1),
    ],
    ids=["empty", "one too long", "4 GiB", "event of one byte", "event without number", "long event in a run"],
)
def test_a_bad_length_ends_the_stream_before_anything_is_stored(hostile: bytes) -> None:
    reader = Readers(LIMIT)
    with pytest.raises(WireError):
        reader.feed(hostile)
    assert reader.waiting == 0


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_give_frames_or_an_error_and_nothing_piles_up(data: bytes, size: int) -> None:
    reader = Readers(100)
    with suppress(WireError):
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
            assert reader.waiting <= 104


# The greeting comes alone

GREETING_LIMIT = 60


@given(
    bodies.filter(lambda body: len(body) <= GREETING_LIMIT),
    st.lists(st.one_of(bodies, events), max_size=10),
    st.lists(st.integers(1, 100), min_size=1, max_size=10),
)
def test_what_follows_the_greeting_has_a_limit_of_its_own(
    greeting: bytes, parts: list[bytes | tuple[int, int, bytes]], sizes: list[int]
) -> None:
    long = bytes([0x92]) + bytes(LIMIT - 1)  # more than a greeting may have
    data = b"".join(map(framed, [greeting, long, *parts]))
    reader, found, at, number = Readers(GREETING_LIMIT, greeting=True), [], 0, 0
    while at < len(data):
        some = data[at : at + min(sizes[number % len(sizes)], reader.room)]
        at, number = at + len(some), number + 1
        frames = taken_apart(reader.feed(some))
        if not found and frames:
            assert frames == [greeting]
            frames += taken_apart(reader.go_on(LIMIT))
        found += frames
    assert found == [greeting, long, *parts]


def test_the_greeting_keeps_its_limit() -> None:
    reader = Readers(GREETING_LIMIT, greeting=True)
    with pytest.raises(WireError, match="frame of 61 bytes; expected 1 to 60"):
        reader.feed(framed(bytes(GREETING_LIMIT + 1)))
    assert reader.waiting == 0


def test_nothing_piles_up_while_a_greeting_is_not_answered() -> None:
    reader = Readers(GREETING_LIMIT, greeting=True)
    body = framed(b"x" * 10)
    assert reader.feed(body * 4) == [b"x" * 10]
    for _ in range(100):
        assert reader.feed(body) == []
        assert reader.waiting <= GREETING_LIMIT


# Streams

KINDS = [Data, Deactivate, Gossip]
FLOW = ("a:1/x", 0)


def data(**changes: object) -> Data:
    return msgspec.structs.replace(Data(FLOW, "a:1/x", 5, 2, ("a:1/x", "b:1/y"), 0, "t", b"p"), **changes)


def test_a_stream_has_one_number_on_all_its_way() -> None:
    shape = Shape(Data)
    number = shape.stream_of(data())
    assert number == Shape(Data).stream_of(data(seq=9, payload=b"other", hops=7, path=("a:1/x",)))
    others = [data(topic="u"), data(flags=1), data(source="b:1/y"), data(flow=("a:1/x", 1))]
    assert len({number, *map(shape.stream_of, others)}) == 5


def test_a_head_and_an_event_make_the_message_again() -> None:
    shapes = Shapes(KINDS)
    decoder = Decoder([*KINDS, Head])
    for message in (data(), Gossip("a:1/x", 3, 1, "t", b"q")):
        shape = shapes.get(type(message))
        assert shape is not None
        stream, known = shape.stream_of(message), Known(decoder, shapes)
        known.learn(decoder.unframe(frame(shape.head(message, stream))))
        (again,) = shape.events(known.find(stream), message.seq, [message.payload])
        assert again == message == shape.with_event(known.find(stream), message.seq, message.payload)
    assert shapes.get(Deactivate) is None


def test_a_head_must_be_true_and_there_are_not_too_many() -> None:
    shapes, decoder = Shapes(KINDS), Decoder([*KINDS, Head])
    shape, known = Shape(Data), Known(decoder, shapes)
    with pytest.raises(WireError, match="wrong number"):
        known.learn(shape.head(data(), 1))
    with pytest.raises(WireError, match="carries no event"):
        known.learn(Head(1, msgspec.Raw(msgspec.msgpack.encode(Deactivate(FLOW)))))
    with pytest.raises(WireError, match="not a message"):
        known.learn(Head(1, msgspec.Raw(b"\xc1")))
    with pytest.raises(WireError, match="unknown stream"):
        known.find(2)
    streams = [data(topic=str(number)) for number in range(STREAMS_MAX + 1)]
    for each in streams:
        known.learn(shape.head(each, shape.stream_of(each)))
    assert len(known.heads) == STREAMS_MAX
    assert known.find(shape.stream_of(streams[1])).topic == "1"
    with pytest.raises(WireError, match="unknown stream"):
        known.find(shape.stream_of(streams[0]))


def test_heads_of_streams_take_so_many_bytes_and_no_more() -> None:
    """Each may have a path of a thousand processes, and a link may have thousands of streams."""
    shapes, decoder = Shapes(KINDS), Decoder([*KINDS, Head])
    shape, known = Shape(Data), Known(decoder, shapes)
    path = tuple(f"127.0.0.1:9/{number}".ljust(120, "x") for number in range(1000))

    def learn(number: int, path: tuple[str, ...]) -> None:
        like = data(flow=("a:1/x", number), path=path)
        known.learn(shape.head(like, shape.stream_of(like)))

    def learn_all() -> None:
        for number in range(STREAMS_MAX):
            learn(number, path)

    for number in range(2 * STREAMS_MAX):
        learn(number, path[:4])
    for _ in range(300):
        learn(0, path)  # told again and again: it takes the place of what was told before
    with pytest.raises(WireError, match="too much to remember"):
        learn_all()
    assert sum(len(str(like.path)) for like in known.heads.values()) < 3 * HEADS_BYTES_MAX
