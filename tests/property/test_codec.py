"""Whatever bytes arrive, decoding gives a message or raises WireError."""

from __future__ import annotations

import contextlib

from hypothesis import example, given
from hypothesis import strategies as st

from epicast.core.errors import WireError
from epicast.core.message import Message
from epicast.wire import codec
from tests.property.wire_examples import KINDS, messages

decoder = codec.Decoder(KINDS)


def survive(body: bytes) -> None:
    """Decode; a message that comes out must be one that could have been sent."""
    with contextlib.suppress(WireError):
        message = decoder.decode(body)
        assert isinstance(message, KINDS)
        assert decoder.decode(codec.encode(message)) is not None
    with contextlib.suppress(WireError):
        decoder.unframe(body)


@given(messages)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert decoder.decode(codec.encode(message)) == message
    assert decoder.unframe(codec.frame(message)) == message


@given(messages)
def test_the_size_is_the_length_of_the_frame(message: Message) -> None:
    assert codec.size(message) == len(codec.frame(message))


@given(st.binary(max_size=400))
@example(b"")
@example(b"\xc1")
@example(b"\x91\xc4")
def test_random_bytes_raise_nothing_else(body: bytes) -> None:
    survive(body)


@given(messages, st.data())
def test_a_frame_that_was_cut_short_is_refused(message: Message, data: st.DataObject) -> None:
    frame = codec.frame(message)
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    try:
        decoder.unframe(cut)
    except WireError:
        return
    raise AssertionError(f"{cut!r} was taken for a message")


@given(messages, st.data())
def test_a_body_that_was_cut_short_is_refused(message: Message, data: st.DataObject) -> None:
    body = codec.encode(message)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]
    try:
        decoder.decode(cut)
    except WireError:
        return
    raise AssertionError(f"{cut!r} was taken for a message")


@given(messages, st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_raise_nothing_else(message: Message, flips: list[tuple[int, int]]) -> None:
    body = bytearray(codec.encode(message))
    for at, value in flips:
        body[at % len(body)] = value
    survive(bytes(body))


@given(messages, st.binary(min_size=1, max_size=40), st.integers(0, 1 << 16))
def test_inserted_bytes_raise_nothing_else(message: Message, extra: bytes, at: int) -> None:
    body = codec.encode(message)
    at %= len(body) + 1
    survive(body[:at] + extra + body[at:])


@given(messages, st.binary(min_size=1, max_size=40))
def test_bytes_after_a_message_are_refused(message: Message, extra: bytes) -> None:
    for call in (decoder.decode, decoder.unframe):
        try:
            call(codec.encode(message) + extra)
        except WireError:
            continue
        raise AssertionError("bytes that nobody sent were ignored")
