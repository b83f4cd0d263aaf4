"""Frames as they stand on the wire, and bytes that someone made up to hurt a node."""

import math
import struct

import msgspec
import pytest

from epicast.core.errors import EpicastError, WireError
from epicast.core.message import (
    LIST_LENGTH_MAX,
    PATH_LENGTH_MAX,
    PAYLOAD_BYTES_MAX,
    TOPIC_LENGTH_MAX,
    Message,
    Position,
)
from epicast.wire import codec
from tests.property.wire_examples import KINDS, Gossip, Hello, Shuffle

decoder = codec.Decoder(KINDS)
pack = msgspec.msgpack.encode
GOSSIP, SHUFFLE = 1_000_031, 1_000_032


def refused(body: bytes) -> str:
    with pytest.raises(WireError) as caught:
        decoder.decode(body)
    return str(caught.value)


def test_a_frame_is_a_length_and_an_array_that_begins_with_the_tag() -> None:
    frame = codec.frame(Gossip(source=1, seq=2, topic="t", hops=3, payload=b"p", path=(4,)))
    assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
    assert msgspec.msgpack.decode(frame[4:]) == [GOSSIP, 1, 2, "t", 3, b"p", [4]]


def test_sizes_are_exact() -> None:
    assert codec.size(Hello()) == 4 + 1 + 5  # header, array of one, tag of 32 bits
    assert codec.size(Gossip(1, 2, "t", 3, b"")) == len(codec.frame(Gossip(1, 2, "t", 3, b"")))
    grown = codec.size(Gossip(1, 2, "t", 3, b"x" * 100)) - codec.size(Gossip(1, 2, "t", 3, b""))
    assert grown == 100


def test_ids_of_both_kinds_come_back_as_they_were() -> None:
    message = Shuffle(peers=(1, "a:1"), positions=(Position(("b:2", 0), (3, "c"), ((4, 5),), True),), weight=0.5)
    assert decoder.unframe(codec.frame(message)) == message


def test_fields_that_have_defaults_may_be_left_out() -> None:
    assert decoder.decode(pack([SHUFFLE, [1]])) == Shuffle(peers=(1,))


def test_a_decoder_knows_its_own_messages_only() -> None:
    with pytest.raises(WireError):
        codec.Decoder([Hello]).decode(codec.encode(Shuffle(peers=())))


def test_a_decoder_of_one_message_still_wants_its_tag() -> None:
    assert codec.Decoder([Hello]).decode(codec.encode(Hello())) == Hello()
    with pytest.raises(WireError):
        codec.Decoder([Hello]).decode(pack([]))


def test_a_body_may_be_a_view_of_a_buffer() -> None:
    assert decoder.decode(memoryview(codec.encode(Hello()))) == Hello()


def test_a_wire_error_is_one_that_a_caller_can_act_on() -> None:
    assert issubclass(WireError, EpicastError)


# Frames that lie about their length


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x00"])
def test_a_frame_without_a_whole_header_is_refused(data: bytes) -> None:
    with pytest.raises(WireError, match="header"):
        decoder.unframe(data)


@pytest.mark.parametrize("wrong", [-1, 1, 1 << 20])
def test_a_frame_of_another_length_than_it_says_is_refused(wrong: int) -> None:
    body = codec.encode(Hello())
    with pytest.raises(WireError, match="frame says"):
        decoder.unframe((len(body) + wrong).to_bytes(4, "big") + body)


def test_a_body_above_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(WireError, match="limit"):
        decoder.decode(bytes(codec.FRAME_BYTES_MAX + 1))


def test_a_message_above_the_limit_is_not_framed() -> None:
    with pytest.raises(WireError, match="limit"):
        codec.frame(Gossip(1, 2, "t", 3, bytes(codec.FRAME_BYTES_MAX)))


def test_the_largest_payload_fits() -> None:
    message = Gossip(
        "host.example:65535", (1 << 63) - 1, "t" * 255, 9, bytes(PAYLOAD_BYTES_MAX), (1,) * PATH_LENGTH_MAX
    )
    assert decoder.unframe(codec.frame(message)) == message


# Values out of range


@pytest.mark.parametrize(
    "fields",
    [
        [GOSSIP, 1, -1, "t", 0, b""],
        [GOSSIP, 1, 1 << 63, "t", 0, b""],
        [GOSSIP, 1, 0, "t", -1, b""],
        [GOSSIP, 1, 0, "t", 1 << 15, b""],
        [GOSSIP, 1, 0, "t" * (TOPIC_LENGTH_MAX + 1), 0, b""],
        [GOSSIP, 1, 0, "t", 0, bytes(PAYLOAD_BYTES_MAX + 1)],
        [GOSSIP, 1, 0, "t", 0, b"", [0] * (PATH_LENGTH_MAX + 1)],
        [SHUFFLE, [0] * (LIST_LENGTH_MAX + 1)],
        [SHUFFLE, [], [[[0, 0], [], [[0, 0]] * (LIST_LENGTH_MAX + 1)]]],
        [GOSSIP, 1.0, 0, "t", 0, b""],
        [GOSSIP, None, 0, "t", 0, b""],
        [GOSSIP, b"me", 0, "t", 0, b""],
        [GOSSIP, True, 0, "t", 0, b""],
        [GOSSIP, 1, "0", "t", 0, b""],
        [GOSSIP, 1, math.nan, "t", 0, b""],
        [GOSSIP, 1, math.inf, "t", 0, b""],
        [GOSSIP, 1, 0, 7, 0, b""],
        [GOSSIP, 1, 0, "t", 0, None],
        [GOSSIP, 1, 0, "t"],
        [SHUFFLE, {"a": 1}],
        [SHUFFLE, [[1]]],
    ],
    ids=lambda fields: repr(fields)[:50],
)
def test_a_value_that_no_field_allows_is_refused(fields: list[object]) -> None:
    refused(pack(fields))


@pytest.mark.parametrize("tag", [0, 999, -1, 1 << 40, "gossip", None, 1.5, [GOSSIP], math.nan], ids=repr)
def test_an_unknown_tag_is_refused(tag: object) -> None:
    refused(pack([tag, 1, 0, "t", 0, b""]))


@pytest.mark.parametrize("body", [pack(None), pack(1), pack("x"), pack({}), pack({"type": GOSSIP}), pack([]), b""])
def test_what_is_no_array_with_a_tag_is_refused(body: bytes) -> None:
    refused(body)


@pytest.mark.parametrize("text", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
def test_a_text_that_is_no_utf8_is_refused(text: bytes) -> None:
    good = pack([GOSSIP, 1, 0, "?" * len(text), 0, b""])
    assert isinstance(decoder.decode(good), Gossip)
    refused(good.replace(b"?" * len(text), text))
    as_id = pack([SHUFFLE, ["?" * len(text)]])
    refused(as_id.replace(b"?" * len(text), text))


# Bytes that aim at memory or the stack


@pytest.mark.parametrize("opener", [b"\x91", b"\x81\x00", b"\xdd\x00\x00\x00\x01", b"\xdf\x00\x00\x00\x01\x00"])
@pytest.mark.parametrize("where", ["outside", "in a field", "after the fields"])
def test_deep_nesting_is_refused(opener: bytes, where: str) -> None:
    prefix = {
        "outside": b"",
        "in a field": b"\x92" + pack(SHUFFLE),
        "after the fields": b"\x96" + pack(SHUFFLE) + pack([]) + pack([]) + pack(0.0) + pack(False),
    }[where]
    refused(prefix + opener * 100_000 + b"\x00")


def test_a_list_of_a_million_entries_is_refused() -> None:
    refused(pack([SHUFFLE, [0] * 1_000_000]))
    refused(pack([SHUFFLE, [], [0] * 1_000_000]))
    refused(pack([0] * 1_000_000))


@pytest.mark.parametrize("length", [1 << 20, (1 << 32) - 1])
@pytest.mark.parametrize("code", [0xC6, 0xC9, 0xDB, 0xDD, 0xDF])
def test_a_length_that_the_bytes_do_not_have_is_refused(code: int, length: int) -> None:
    claim = struct.pack(">BI", code, length)
    for prefix in (
        b"",
        b"\x92" + pack(SHUFFLE),
        b"\x93" + pack(SHUFFLE) + pack([]),
        b"\x96" + pack([GOSSIP, 1, 0, "t", 0])[1:],
    ):
        refused(prefix + claim)


def test_the_error_fits_on_one_line() -> None:
    assert "\n" not in refused(pack([GOSSIP, 1, 0, 7, 0, b""]))


def test_not_a_number_is_a_number_where_one_is_expected() -> None:
    message = decoder.decode(pack([SHUFFLE, [], [], math.nan]))
    assert isinstance(message, Shuffle)
    assert math.isnan(message.weight)


def test_messages_cannot_be_changed() -> None:
    message: Message = Hello()
    with pytest.raises(AttributeError):
        message.layer = "x"  # type: ignore[misc]
