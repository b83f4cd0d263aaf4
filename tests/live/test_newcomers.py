"""Newcomers to topics that have an order: once they are ready, what others publish is delivered as it comes.

EPICAST_SOAK=1 takes forty newcomers instead of fifteen.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.live.subscription import Subscription
from tests.live.clusters import run, until

ORDERS = {"log/*": "fifo", "chat/*": "causal"}
TOPICS = ("log/x", "chat/y")
NEWCOMERS, STAYING = 40 if os.environ.get("EPICAST_SOAK") == "1" else 15, 5
PAUSE_S = 0.02  # fifty messages a second from each of two, on each topic
BEFORE = 100  # numbers of messages from before the first newcomer: BRISA gives it those of its last second
ENOUGH = 60  # messages that each newcomer takes
LIMIT_S = 0.5


@asynccontextmanager
async def publishing(nodes: list[Node]) -> AsyncIterator[None]:
    published = dict.fromkeys(nodes, 0)

    async def publish(node: Node) -> None:
        while True:
            for topic in TOPICS:
                await node.publish(topic, b"%d" % published[node])
            published[node] += 1
            await asyncio.sleep(PAUSE_S)

    tasks = [asyncio.create_task(publish(node)) for node in nodes]
    try:
        await until(lambda: min(published.values()) >= BEFORE, "nothing is published")
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Taken:
    """What one newcomer got, and how long after."""

    def __init__(self) -> None:
        self.items: list[tuple[float, Message | Gap]] = []
        self.ready_s = 0.0

    async def take(self, subscription: Subscription) -> None:
        async for item in subscription:
            self.items.append((time.time(), item))

    def later(self, topic: str) -> list[tuple[float, Message]]:
        """Published after `ready` had returned."""
        found = [(at, item) for at, item in self.items if isinstance(item, Message) and item.topic == topic]
        return [(at, item) for at, item in found if at - item.latency > self.ready_s]

    def require_in_order(self) -> None:
        assert [item for _, item in self.items if isinstance(item, Gap)] == []
        last: dict[tuple[str, str], int] = {}
        for _, item in self.items:
            assert isinstance(item, Message)
            line, number = (item.source, item.topic), int(item.payload)
            assert number == last.get(line, number - 1) + 1, line
            last[line] = number


async def join(seed: Node, stack: str) -> tuple[Node, Taken]:
    node, taken = Node(stack=stack, order=ORDERS, seeds=[seed.address]), Taken()
    await node.start()
    subscription = await node.subscribe("**").__aenter__()
    task = asyncio.create_task(taken.take(subscription))
    await node.ready()
    taken.ready_s = time.time()
    try:
        await until(lambda: all(len(taken.later(topic)) >= ENOUGH // 2 for topic in TOPICS), "messages do not come")
    finally:
        task.cancel()
    return node, taken


def p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * len(values))]


@pytest.mark.parametrize("stack", ["brisa", "flood"])
def test_newcomers_need_not_wait_for_messages_of_ordered_topics(stack: str) -> None:
    async def body() -> None:
        firsts: list[float] = []
        latencies: list[float] = []
        async with (
            Node(stack=stack, order=ORDERS) as one,
            Node(stack=stack, order=ORDERS, seeds=[one.address]) as other,
        ):
            await other.ready()
            async with publishing([one, other]):
                nodes: list[Node] = []
                for _ in range(NEWCOMERS):
                    node, taken = await join(one, stack)
                    nodes.append(node)
                    if len(nodes) > STAYING:
                        await nodes.pop(0).stop()
                    taken.require_in_order()
                    for topic in TOPICS:
                        later = taken.later(topic)
                        firsts.append(later[0][0] - taken.ready_s)
                        latencies += [message.latency for _, message in later]
                for node in nodes:
                    await node.stop()
        assert len(firsts) == NEWCOMERS * len(TOPICS)
        assert p99(firsts) < LIMIT_S
        assert p99(latencies) < LIMIT_S

    run(body())


def test_ready_waits_until_a_newcomer_knows_where_its_duty_begins() -> None:
    async def body() -> None:
        async with Node(order=ORDERS) as one, Node(order=ORDERS, seeds=[one.address]) as other:
            await other.ready()
            async with publishing([one, other]), Node(order=ORDERS, seeds=[one.address]) as newcomer:
                await newcomer.ready()
                assert newcomer._stack_node.settled()

    run(body())
