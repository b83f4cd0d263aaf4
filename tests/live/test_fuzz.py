"""Bytes that nobody would send, drawn at random: frames are cut as they should be, and a node outlives all of it.

EPICAST_SOAK=1 draws many more.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from epicast.core.errors import WireError
from epicast.core.message import Message, Position
from epicast.dissemination.brisa_messages import Activate, Baseline, Deactivate, Recover, Whereabouts
from epicast.live.sync import new_loop
from epicast.membership import hyparview_messages as hyparview
from epicast.wire.codec import encode, frame
from epicast.wire.frames import event_frame
from tests.live.attacker import ME, Attacker, data, framed, head, hello, stream_of
from tests.live.fuzz_coverage import Fuzzer
from tests.live.fuzz_target import ENEMY, FRIEND, as_input, bodies_in, one_input, seeds
from tests.live.readers import Readers, taken_apart
from tests.live.siege import Siege, besieged, until

SOAK = os.environ.get("EPICAST_SOAK") == "1"
LIMIT = 300

# Frames

bodies = st.binary(min_size=1, max_size=40).filter(lambda body: body[0] != 0xC1).map(framed)
events = st.builds(event_frame, st.integers(0, 2), st.integers(0, 4), st.binary(max_size=20))
streams = st.lists(bodies | events, max_size=20).map(b"".join)
cuts = st.lists(st.integers(0, 400), max_size=12)


def fed(reader: Readers, content: bytes, at: list[int]) -> list[Any]:
    """The frames of a content that comes in pieces."""
    edges = [0, *sorted(min(each, len(content)) for each in at), len(content)]
    return [each for start, end in pairwise(edges) for each in taken_apart(reader.feed(content[start:end]))]


@settings(max_examples=5000 if SOAK else 200)
@given(streams, cuts)
def test_frames_are_the_same_however_the_bytes_come(content: bytes, at: list[int]) -> None:
    whole, pieces = Readers(LIMIT), Readers(LIMIT)
    assert fed(pieces, content, at) == fed(whole, content, [])
    assert pieces.waiting == whole.waiting == 0


@settings(max_examples=5000 if SOAK else 200)
@given(streams, st.binary(max_size=400), cuts)
@example(b"", b"\x00\x00\x01\x2c\xc1", [4])
@example(b"", b"\x00\x00\x00\x01\xc1", [])
@example(b"", b"\xff\xff\xff\xff", [1, 2, 3])
def test_noise_ends_a_stream_or_waits_for_more(before: bytes, noise: bytes, at: list[int]) -> None:
    reader = Readers(LIMIT)
    try:
        for each in fed(reader, before + noise, at):
            assert len(each) <= LIMIT
    except WireError:
        pass
    assert reader.waiting <= LIMIT + 4


@settings(max_examples=1000 if SOAK else 50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_length_is_judged_before_anything_is_stored(claimed: int, at: int) -> None:
    reader = Readers(LIMIT)
    header = claimed.to_bytes(4, "big")
    try:
        reader.feed(header[:at])
        reader.feed(header[at:])
        assert 0 < claimed <= LIMIT
    except WireError:
        assert not 0 < claimed <= LIMIT
    assert reader.waiting <= 4


# Sequences of frames into a real node over a real socket

ids = st.sampled_from([ME, "127.0.0.1:9/other", "x", "", "127.0.0.1:0/x", "y" * 120])
flows = st.tuples(ids, st.integers(0, 3))
counts = st.integers(0, 3) | st.integers(0, (1 << 63) - 1)
peers = st.lists(ids, max_size=5).map(tuple)
positions = st.builds(
    Position,
    flow=flows,
    path=peers,
    progress=st.lists(st.tuples(ids, counts), max_size=3).map(tuple),
    pending=st.booleans(),
)
ranges = st.lists(st.tuples(ids, counts, counts), max_size=3).map(tuple)
valid: st.SearchStrategy[Message] = st.one_of(
    st.just(hyparview.Join()),
    st.builds(hyparview.ForwardJoin, ids, st.integers(0, 6)),
    st.builds(hyparview.Neighbour, st.sampled_from(hyparview.Priority)),
    st.builds(hyparview.NeighbourReply, st.booleans(), peers),
    st.builds(hyparview.Disconnect, st.booleans()),
    st.builds(hyparview.Shuffle, ids, st.integers(0, 6), peers),
    st.builds(hyparview.ShuffleReply, peers),
    st.builds(hyparview.KeepAlive, counts, counts, st.lists(positions, max_size=3).map(tuple)),
    st.builds(hyparview.KeepAliveAck, counts),
    st.builds(Deactivate, flows, st.booleans()),
    st.builds(Activate, flows, st.booleans(), peers),
    st.builds(Whereabouts, positions),
    st.builds(Recover, flows, ranges, counts, st.booleans()),
    st.builds(Baseline, flows, st.lists(st.tuples(ids, counts), max_size=3).map(tuple), counts),
)
EVENT = data((ME, 0), ME, 0, b"", flags=2)  # builds a tree and is not delivered
told = st.lists(st.integers(0, 5), min_size=1, max_size=5).map(
    lambda numbers: head(EVENT) + b"".join(event_frame(stream_of(EVENT), seq, b"") for seq in numbers)
)
noise = st.binary(min_size=1, max_size=60)


def mutated(frame_bytes: bytes, at: int, value: int) -> bytes:
    at %= len(frame_bytes)
    return frame_bytes[:at] + bytes((value,)) + frame_bytes[at + 1 :]


good = valid.map(frame) | told
bad = st.builds(mutated, good, st.integers(0, 500), st.integers(0, 255)) | noise | noise.map(framed)
sequences = st.lists(good | good | good | bad, min_size=1, max_size=12)


async def play(siege: Siege, greeted: bool, frames: list[bytes], apart: bool) -> None:
    attacker = await (Attacker.greeted if greeted else Attacker.dial)(siege.node.address)
    if not greeted:
        frames = [hello(node=f"127.0.0.1:9/x{len(frames)}"), *frames]
    for each in frames if apart else [b"".join(frames)]:
        attacker.send(each)
        await asyncio.sleep(0)
    if not attacker.writer.transport.is_closing():
        attacker.writer.write_eof()
    await attacker.gone()
    siege.bounded()
    siege.no_lies()
    assert siege.errors == []


def test_a_node_outlives_any_sequence_of_frames() -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        stack = AsyncExitStack()
        siege: Siege = runner.run(stack.enter_async_context(besieged()))

        @settings(max_examples=3000 if SOAK else 80, suppress_health_check=[HealthCheck.too_slow])
        @given(st.booleans(), sequences, st.booleans())
        def attack(greeted: bool, frames: list[bytes], apart: bool) -> None:
            runner.run(play(siege, greeted, frames, apart))

        try:
            attack()
            runner.run(siege.stands())
            runner.run(until(lambda: not siege.node._hub.door.handshakes))
        finally:
            Attacker.close_all()
            runner.run(stack.aclose())


# Guided by coverage


def test_the_fuzzer_finds_nothing() -> None:
    fuzzer = Fuzzer(one_input, seeds(), seed=1)
    known = len(fuzzer.coverage.seen)
    fuzzer.run(100_000 if SOAK else 250)
    assert len(fuzzer.coverage.seen) > known, "it gets nowhere"


def test_the_fuzzer_finds_what_is_hidden() -> None:
    fuzzer = Fuzzer(with_a_trap, seeds(), seed=1, folder=str(Path(__file__).parent))
    with pytest.raises(ZeroDivisionError) as caught:
        fuzzer.run(5000)
    assert "one_input" in caught.value.__notes__[0]


def with_a_trap(content: bytes) -> None:
    for body in bodies_in(content):
        try:
            value = msgspec.msgpack.decode(body, type=list[Any])
        except (msgspec.MsgspecError, ValueError):
            continue
        if value[:1] == [2]:
            last = value[-1]
            if last == 255:
                raise ZeroDivisionError


FINDINGS: dict[str, list[bytes]] = {
    "more hops than a message may have": [encode(data((FRIEND, 0), ENEMY, 7, b"", path=(), flags=1, hops=32_767))],
    "a number that no request may have": [
        encode(hyparview.KeepAlive(1, 4, (Position((FRIEND, 0), (FRIEND, ENEMY), ((FRIEND, (1 << 64) - 1),)),)))
    ],
}


@pytest.mark.parametrize("what", FINDINGS)
def test_what_was_found_is_mended(what: str) -> None:
    one_input(as_input(FINDINGS[what]))
