"""What is held back on its way to another area: nothing is lost or reordered, and there is a bound."""

from __future__ import annotations

import asyncio
from typing import Any

from epicast.live.far_links import HELD_HIGH_BYTES, DelayedTransport
from tests.live.clusters import run, until


class Wire:
    """The transport below, and the protocol above."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.notes: list[str] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def write_eof(self) -> None:
        self.notes.append("eof")

    def get_write_buffer_size(self) -> int:
        return 7

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True

    def pause_writing(self) -> None:
        self.notes.append("pause")

    def resume_writing(self) -> None:
        self.notes.append("resume")


def delayed(delay_s: float = 0.02) -> tuple[DelayedTransport, Wire]:
    wire: Any = Wire()
    return DelayedTransport(asyncio.get_running_loop(), wire, wire, delay_s), wire


def test_what_is_written_comes_later_in_order_and_the_end_last() -> None:
    async def body() -> None:
        transport, wire = delayed()
        loop = asyncio.get_running_loop()
        started = loop.time()
        buffer = bytearray(b"first")
        transport.write(memoryview(buffer))
        buffer[:] = b"wrong"
        transport.write(b"second")
        transport.write_eof()
        assert wire.written == []
        assert transport.get_write_buffer_size() == 7 + 11
        await until(lambda: wire.notes)
        assert loop.time() - started >= 0.02
        assert wire.written == [b"first", b"second"]
        assert wire.notes == ["eof"]
        assert transport.get_write_buffer_size() == 7

    run(body())


def test_beyond_a_bound_the_writer_has_to_wait() -> None:
    async def body() -> None:
        transport, wire = delayed()
        transport.write(bytes(HELD_HIGH_BYTES + 1))
        assert wire.notes == ["pause"]
        await until(lambda: "resume" in wire.notes)
        assert sum(map(len, wire.written)) == HELD_HIGH_BYTES + 1

    run(body())


def test_a_connection_that_is_cut_writes_no_more() -> None:
    async def body() -> None:
        transport, wire = delayed()
        transport.write(b"lost")
        transport.abort()
        await until(lambda: transport._timer is None)
        assert (wire.written, wire.notes) == ([], [])

    run(body())
