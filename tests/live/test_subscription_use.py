"""Subscriptions as applications use them: never opened, opened twice, read by several, closed while somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from epicast import EpicastError, Message, Node, SlowSubscriber, SyncNode
from epicast.live.subscription import Subscription
from tests.live.clusters import run, until


async def first_of_loop(messages: Subscription) -> object:
    async for item in messages:
        return item
    return None


async def first_of_batches(messages: Subscription) -> object:
    async for items in messages.batches():
        return items
    return None


async def first_of_anext(messages: Subscription) -> object:
    return await anext(messages)


@pytest.mark.parametrize("read", [first_of_loop, first_of_batches, first_of_anext])
def test_reading_a_subscription_that_was_never_opened_raises(read: Callable[[Subscription], Any]) -> None:
    async def work() -> None:
        async with Node() as node:
            messages = node.subscribe("t")
            with pytest.raises(EpicastError, match=r"not open: use `async with node\.subscribe\(\.\.\.\) as messages`"):
                await read(messages)

    run(work())


def test_a_subscription_is_opened_once() -> None:
    async def work() -> None:
        async with Node() as node:
            messages = node.subscribe("t")
            async with messages:
                with pytest.raises(EpicastError, match="was opened before: subscribe again"):
                    async with messages:
                        pass
                await node.publish("t", b"still open")
                assert await first_of_anext(messages)
            with pytest.raises(EpicastError, match="was opened before: subscribe again"):
                await messages.__aenter__()
            assert [item async for item in messages] == []

    run(work())


def test_several_readers_share_a_subscription() -> None:
    """Each message goes to one of them, and none is forgotten while it waits."""

    async def work() -> None:
        async with Node() as node, node.subscribe("t") as messages:
            taken: list[bytes] = []

            async def read() -> None:
                async for item in messages:
                    assert isinstance(item, Message)
                    taken.append(item.payload)

            readers = [asyncio.create_task(read()) for _ in range(3)]
            await asyncio.sleep(0)
            for number in range(10):
                await node.publish("t", b"%d" % number)
            await until(lambda: len(taken) == 10, "a message was not taken")
            messages.close()
            async with asyncio.timeout(10):
                await asyncio.gather(*readers)
            assert sorted(taken) == [b"%d" % number for number in range(10)]

    run(work())


def test_readers_that_gave_up_leave_nothing_behind() -> None:
    async def work() -> None:
        async with Node() as node, node.subscribe("t") as messages:
            for _ in range(50):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await anext(messages)
            await node.publish("t", b"x")
            assert isinstance(await anext(messages), Message)
            assert len(messages._waiters) == 0

    run(work())


def test_a_sync_subscription_that_was_never_opened_raises() -> None:
    with SyncNode() as node:
        messages = node.subscribe("t")
        with pytest.raises(EpicastError, match=r"not open: use `with node\.subscribe\(\.\.\.\) as messages`"):
            messages.get(timeout=10)
        with pytest.raises(EpicastError, match=r"not open: use `with node\.subscribe\(\.\.\.\) as messages`"):
            list(messages)


def test_a_sync_loop_tells_that_its_subscriber_was_too_slow() -> None:
    with SyncNode() as node, node.subscribe("t", policy="disconnect", messages_max=2) as messages:
        for _ in range(4):
            node.publish("t", b"x")
        with pytest.raises(SlowSubscriber, match="fell behind by 2 messages"):
            list(messages)


def test_a_sync_loop_ends_when_its_subscription_or_its_node_does() -> None:
    node = SyncNode()
    node.start()
    with node.subscribe("t") as messages:
        node.publish("t", b"x")
        messages.close()
        assert [item.payload for item in messages if isinstance(item, Message)] == [b"x"]
    with node.subscribe("t") as others:
        node.stop()
        with pytest.raises(EpicastError, match="not running"):
            list(others)
