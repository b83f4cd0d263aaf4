"""A loop that stands still while connections are made: a dial may time out in the moment in which it succeeds."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest

from epicast.live import same_machine
from epicast.live.config import Limits
from epicast.live.ids import Address
from epicast.live.node import Node
from tests.live.clusters import cluster, run, until

HANDSHAKE_S = 0.1
LIMITS = {"handshake_us": int(HANDSHAKE_S * 1e6), "backoff_us": 1, "backoff_max_us": 1}
TURNS = 12
"""A dial takes fewer turns of the loop than that."""


@contextmanager
def deaf(*, local: bool) -> Iterator[Address]:
    """The system takes connections here, and nobody ever reads from them."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = Address(*listener.getsockname()[:2])
        if local:
            here = same_machine.listen(address, 100)
            assert here is not None
            stack.enter_context(here)
        yield address


def stall_after(turns: int, then: Callable[[], None]) -> None:
    """Call it after so many turns of the loop."""
    loop = asyncio.get_running_loop()
    loop.call_soon(then) if not turns else loop.call_soon(stall_after, turns - 1, then)


async def dial_and_stall(node: Node, address: Address, turns: int) -> None:
    stalled = asyncio.Event()

    def stall() -> None:
        time.sleep(1.5 * HANDSHAKE_S)
        stalled.set()

    peer = f"{address}/turn{turns}"
    node._hub.open(peer)
    stall_after(turns, stall)
    await stalled.wait()
    await until(lambda: peer not in node._hub.links, "the dial never ends")


@asynccontextmanager
async def two(limits: Limits) -> AsyncIterator[tuple[Node, Node, list[Any]]]:
    """A node, its friend, and what went wrong in the loop."""
    errors: list[Any] = []
    async with cluster(2, limits=limits) as (friend, node):
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        yield node, friend, errors


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("local", [False, True], ids=["tcp", "unix"])
def test_a_dial_that_times_out_as_it_succeeds_harms_no_other_link(fast: bool, local: bool) -> None:
    async def work() -> None:
        limits = Limits(**LIMITS, local_sockets=local)
        with deaf(local=local) as address:
            async with two(limits) as (node, friend, errors), friend.subscribe() as messages:
                link = node._hub.links[friend.id].conn
                for turns in range(TURNS):
                    await dial_and_stall(node, address, turns)
                    await node.publish("t", b"%d" % turns)
                    async with asyncio.timeout(10):
                        message: Any = await anext(messages)
                    assert message.payload == b"%d" % turns
                await until(lambda: list(node._hub._open) == [link], "a dead connection is left")
                began = time.monotonic()
                await node.stop()
                assert time.monotonic() - began < 5
                assert errors == []

    run(work(), fast=fast)
