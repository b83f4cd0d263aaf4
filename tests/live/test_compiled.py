"""Compiled messages are the pure ones; blocks are shared without harm; and without compiled parts all works too."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.live import plain_messages as pure
from epicast.live.envelope import HEADERS, PLAIN, pack_plain
from epicast.wire import frames
from epicast.wire.frames import Run, event_frame

_frames = pytest.importorskip("epicast.wire._frames", reason="the compiled parts were not built")
_messages = pytest.importorskip("epicast.live._messages", reason="the compiled parts were not built")

payloads = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.builds(pack_plain, st.integers(0, (1 << 64) - 1), st.binary(max_size=30)),
        st.just(PLAIN.pack(HEADERS, 5) + b"dressed"),
    ),
    min_size=1,
    max_size=12,
)


def run_of(reader: type[frames.FrameReader], events: list[bytes]) -> Run:
    (run,) = reader(1 << 20).feed(b"".join(event_frame(1, 7 + at, each) for at, each in enumerate(events)))
    assert not isinstance(run, bytes)
    return run


@given(payloads)
def test_messages_are_the_same(events: list[bytes]) -> None:
    one = pure.plain_messages(run_of(frames.FrameReader, events), "t", "a:1/x", 99)
    two = _messages.plain_messages(run_of(_frames.FrameReader, events), "t", "a:1/x", 99)
    assert list(map(repr, one)) == list(map(repr, two))
    for a, b in zip(one, two, strict=True):
        assert (a.size, a.id, a.latency, a.headers) == (b.size, b.id, b.latency, b.headers)


def test_a_message_can_be_made_compared_hashed_and_sent_to_another_process() -> None:
    (lazy,) = _messages.plain_messages(run_of(_frames.FrameReader, [pack_plain(40, b"hi")]), "t", "a:1/x", 99)
    made = _messages.Message("t", b"hi", "a:1/x", 7, 40, 99, {})
    assert lazy.size == 2
    assert lazy == made == pickle.loads(pickle.dumps(lazy))
    assert hash(lazy) == hash(made)
    assert made != _messages.Message("t", b"ho", "a:1/x", 7, 40, 99)
    assert made != "hi"
    signed = _messages.Message("t", b"hi", "a:1/x", 7, 40, 99, {}, "anna")
    assert (signed.signer, lazy.signer) == ("anna", None)
    assert signed != made
    assert signed == pickle.loads(pickle.dumps(signed))
    assert repr(signed) == repr(pure.Message("t", b"hi", "a:1/x", 7, 40, 99, {}, "anna"))
    with pytest.raises(AttributeError):
        made.payload = b""


def test_what_was_read_stays_as_it_is_while_more_is_read() -> None:
    """Large runs stay in the block that they came in, and blocks are used again."""
    reader, kept = _frames.FrameReader(1 << 20), []
    for turn in range(40):
        content = b"".join(event_frame(1, seq, bytes([turn]) * 1000) for seq in range(turn * 100, turn * 100 + 100))
        kept += reader.feed(content)
        if turn % 3 == 0:
            kept = kept[len(kept) // 2 :]
    assert kept
    for run in kept:
        assert run.raw.readonly
        for seq, payload in enumerate(run, run.seq):
            assert payload == bytes([seq // 100]) * 1000


def test_a_reader_takes_no_more_than_there_is_room_for() -> None:
    reader = _frames.FrameReader(1000)
    room = reader.room()
    assert len(room) == 1004, "little before the greeting"
    with pytest.raises(ValueError, match="room"):
        reader.filled(1005)
    with pytest.raises(ValueError, match="room"):
        reader.filled(-1)


def test_a_long_frame_comes_whole() -> None:
    reader, body = _frames.FrameReader(1 << 20), b"\x92" + bytes(range(256)) * 4000
    content, at, found = len(body).to_bytes(4, "big") + body, 0, []
    while at < len(content):
        room = reader.room()
        part = content[at : at + min(len(room), 50_000)]
        room[: len(part)] = part
        found += reader.filled(len(part))
        at += len(part)
    assert found == [body]
    assert reader.waiting == 0


PURE = """
import asyncio
from epicast import Message, Node
from epicast.wire import frames, readers

async def main():
    assert readers.FrameReader is frames.FrameReader and Message.__module__ == "epicast.live.plain_messages"
    async with Node(listen="127.0.0.1:0") as a, Node(listen="127.0.0.1:0", seeds=[a.address]) as b:
        await a.ready()
        async with b.subscribe("t") as messages:
            await b.ready()
            for number in range(500):
                await a.publish("t", b"%d" % number)
            assert [int((await anext(messages)).payload) for _ in range(500)] == list(range(500))

asyncio.run(main())
print("all came")
"""


def test_nodes_talk_without_compiled_parts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PURE],
        env={"EPICAST_ENGINE": "pure", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "all came\n", done.stderr
