"""The first exchange on a connection, and what comes in the same breath as it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from epicast.live.hello import Hello, Welcome, decode, encode
from epicast.live.node import Node
from epicast.membership.hyparview_messages import NeighbourReply
from epicast.wire.codec import HEADER_BYTES, frame
from tests.live.attacker import Attacker, framed, hello
from tests.live.clusters import run, until

KNOWN = tuple(f"127.0.0.1:9/{'x' * 80}{number}" for number in range(60))
LARGE = frame(NeighbourReply(True, KNOWN))
"""More than a greeting may have."""


@asynccontextmanager
async def eager() -> AsyncIterator[str]:
    """A process that has much to say to whoever dials it, and says it together with its Welcome. Gives its address."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(HEADER_BYTES), "big")
        assert isinstance(decode(await reader.readexactly(size)), Hello)
        writer.write(framed(encode(Welcome(f"{address}/eager"))) + LARGE)
        await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    address = f"{host}:{port}"
    try:
        yield address
    finally:
        server.close()


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_a_large_frame_in_the_same_read_as_the_welcome_is_taken(fast: bool) -> None:
    async def work() -> None:
        assert len(LARGE) > 4096
        async with eager() as seed, Node(seeds=[seed]) as node:
            await node.ready()
            await until(lambda: len(node._stack_node.membership.passive) > 20)  # type: ignore[attr-defined]
            assert node._hub.counters["nonsense"] == 0

    run(work(), fast=fast)


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_a_large_frame_in_the_same_read_as_the_hello_is_taken(fast: bool) -> None:
    async def work() -> None:
        async with Node() as node:
            peer = await Attacker.dial(node.address)
            peer.send(hello(), LARGE)
            assert isinstance(await peer.answer(), Welcome)
            await until(lambda: len(node._stack_node.membership.passive) > 20)  # type: ignore[attr-defined]
            assert node._hub.counters["nonsense"] == 0
            peer.close()

    run(work(), fast=fast)


def test_a_greeting_that_is_too_long_is_refused() -> None:
    async def work() -> None:
        async with Node() as node:
            peer = await Attacker.dial(node.address)
            peer.send(framed(msgspec.msgpack.encode("x" * 5000)))
            assert await peer.gone() == b""
            assert node._hub.counters["nonsense"] == 1

    run(work())
