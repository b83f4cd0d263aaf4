"""Nodes on real sockets of this machine, in the loop of a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.live.subscription import Subscription
from epicast.live.sync import new_loop

WAIT_S = 30.0


def run(work: Awaitable[None], *, fast: bool = False) -> None:
    """With asyncio's own loop, or with the fast one if it is installed."""
    with asyncio.Runner(loop_factory=new_loop if fast else None) as runner:
        runner.run(_bounded(work))


async def _bounded(work: Awaitable[None]) -> None:
    async with asyncio.timeout(4 * WAIT_S):
        await work


async def until(true: Callable[[], Any], what: str = "") -> None:
    """Wait for a condition; fail if it does not come."""
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def cluster(count: int, **settings: Any) -> AsyncIterator[list[Node]]:
    """All joined through the first."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Node(**settings))
        others = [await stack.enter_async_context(Node(seeds=[first.address], **settings)) for _ in range(count - 1)]
        nodes = [first, *others]
        await asyncio.gather(*(node.ready() for node in nodes))
        yield nodes


async def payloads(subscription: Subscription, count: int) -> list[bytes]:
    """The next messages, in whatever order: stacks without an order promise none."""
    found: list[bytes] = []
    async with asyncio.timeout(WAIT_S):
        while len(found) < count:
            item = await subscription.__anext__()
            assert isinstance(item, Message), item
            found.append(item.payload)
    return sorted(found)


class Taker:
    """Takes all that comes on topic `t` of a node, and counts it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.got: dict[tuple[str, int], int] = {}  # how often
        self.gaps: list[Gap] = []
        self.task = asyncio.create_task(self._take())

    async def _take(self) -> None:
        async with self.node.subscribe("t") as messages:
            async for each in messages:
                if isinstance(each, Message):
                    self.got[each.id] = self.got.get(each.id, 0) + 1
                elif isinstance(each, Gap):
                    self.gaps.append(each)


@asynccontextmanager
async def taking(nodes: Iterable[Node]) -> AsyncIterator[list[Taker]]:
    takers = [Taker(node) for node in nodes]
    await asyncio.sleep(0)  # they subscribe
    try:
        yield takers
    finally:
        for taker in takers:
            taker.task.cancel()
        await asyncio.gather(*(taker.task for taker in takers), return_exceptions=True)


async def require_all(takers: Iterable[Taker], published: set[tuple[str, int]]) -> None:
    """Once each, and without a gap."""
    takers = list(takers)
    await until(lambda: all(published <= taker.got.keys() for taker in takers), "messages are missing")
    assert [taker.gaps for taker in takers] == [[]] * len(takers)
    assert {times for taker in takers for times in taker.got.values()} == {1}
