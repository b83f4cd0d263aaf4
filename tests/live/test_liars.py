"""A member that claims what nobody published and passes nothing on: others leave it, and no healthy parent for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from statistics import median
from typing import Any

from epicast.live.messages import Message
from epicast.live.node import Node
from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack
from tests.live.clusters import cluster, run, until
from tests.live.liars import turn

RATE = 50
WATCH_S = 0.2
LEFT_WITHIN_S = 60 * WATCH_S  # what the rules need is some ten watch periods


def quick() -> Stack:
    """A pulse five times as fast as usual."""
    return stacks.load(
        "brisa",
        {
            "membership": {"keep_alive": "200ms", "silence": "1500ms", "reply_timeout": "700ms"},
            "dissemination": {"watch": "200ms", "confirm": "200ms", "patience": "800ms", "hard_wait": "500ms"},
        },
    )


class Listener:
    """How old messages are when they come to a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.ages: list[float] = []
        self.got: set[Any] = set()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async with self.node.subscribe("t") as messages:
            async for each in messages:
                assert isinstance(each, Message), each
                self.ages.append(each.latency)
                self.got.add(each.id)


async def publish(node: Node, ids: list[Any]) -> None:
    while True:
        ids.append((await node.publish("t", b"x" * 100)).id)
        await asyncio.sleep(1 / RATE)


def parent_of(node: Node, publisher: Node) -> str | None:
    flows = node._stack_node.dissemination.flows  # type: ignore[attr-defined]
    return next((flow.parent for flow in flows.values() if flow.root == publisher.id), None)


async def holds_for(seconds: float, condition: Callable[[], bool]) -> None:
    """Wait until a condition has held for so long without a break."""
    loop = asyncio.get_running_loop()
    since: list[float] = []

    def steady() -> bool:
        if not condition():
            since.clear()
        elif not since:
            since.append(loop.time())
        return bool(since) and loop.time() - since[0] >= seconds

    await until(steady, "the liar keeps its children")


def test_a_liar_neither_keeps_children_nor_takes_them_from_healthy_parents() -> None:
    async def work() -> None:
        async with cluster(8, stack=quick()) as nodes:
            publisher, liar, honest = nodes[0], nodes[1], nodes[2:]
            listeners = [Listener(node) for node in honest]
            ids: list[Any] = []
            publishing = asyncio.create_task(publish(publisher, ids))
            await until(lambda: all(len(each.ages) > RATE for each in listeners), "the stream does not spread")
            for each in listeners:
                each.ages.clear()
            await asyncio.sleep(1)
            before = median(age for each in listeners for age in each.ages)
            turn(liar)
            await asyncio.sleep(LEFT_WITHIN_S / 4)
            await holds_for(2, lambda: all(parent_of(node, publisher) not in (None, liar.id) for node in honest))
            for each in listeners:
                each.ages.clear()
            await asyncio.sleep(2)
            after = [median(each.ages) for each in listeners]
            print({"median before, ms": before * 1e3, "afterwards, at the worst node, ms": max(after) * 1e3})
            assert max(after) < max(10 * before, 0.05)
            publishing.cancel()
            await until(lambda: all(set(ids) <= each.got for each in listeners), "messages were lost")
            for each in listeners:
                each.task.cancel()
            await asyncio.gather(publishing, *(each.task for each in listeners), return_exceptions=True)

    run(work(), fast=True)
