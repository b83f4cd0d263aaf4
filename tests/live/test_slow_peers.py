"""A process that is halted, or takes little: others go on without it, and it gets what it missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.stacks import stack as stacks
from tests.live.chaos_cluster import GO, STOP, ChaosCluster, Member, until
from tests.live.clusters import cluster, run
from tests.live.clusters import until as until_here

NEVER = "5min"
BODY = bytes(10_000)
COUNT = 350  # much more than the high mark, less than may wait for who is slow


async def leaf(chaos: ChaosCluster, node: Node) -> Member:
    """One that has no children in the tree of this publisher."""
    while True:
        await node.publish("t", b"x")
        await asyncio.sleep(0.1)
        for member in chaos.members:
            if not await member.children(node.id):
                return member


def test_others_do_not_wait_for_a_peer_that_is_stuck(tmp_path: Path) -> None:
    """Nothing ends the link to it here: neither the transport nor the membership gives it up."""
    overrides = {"membership": {"silence_us": NEVER}}
    limits = {"stall_us": 300_000_000, "slow_us": 300_000_000}

    async def work() -> None:
        stack = stacks.load("brisa", overrides)
        async with ChaosCluster(tmp_path, overrides=overrides, limits=limits) as chaos:
            await chaos.grow(3)
            async with Node(seeds=[chaos.members[0].address], stack=stack, limits=limits) as node:
                await node.ready()
                halted = await leaf(chaos, node)
                halted.signal(STOP)
                published = {(await node.publish("t", BODY)).id for _ in range(COUNT)}
                others = [member for member in chaos.members if member is not halted]
                await until(lambda: all(published <= member.got.keys() for member in others), "others wait for it")
                assert not published & halted.got.keys()
                assert node._hub.counters["slow peers cut"] == 0
                halted.signal(GO)
                await until(lambda: published <= halted.got.keys(), "it lacks what it missed")
                assert [member.gaps for member in chaos.members] == [[], [], []]

    run(work(), fast=True)


# An application that takes less than is published


class Reader:
    """Counts what comes to a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.ids: set[Any] = set()
        self.lost = 0
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with self.node.subscribe("t") as messages:
            async for each in messages:
                if isinstance(each, Message):
                    self.ids.add(each.id)
                elif isinstance(each, Gap):
                    self.lost += each.lost


async def dawdle(node: Node, seconds: float) -> None:
    """Reads one message in so long, and lets nothing be dropped meanwhile."""
    async with node.subscribe("t", policy="block", messages_max=20) as messages:
        async for _ in messages:
            await asyncio.sleep(seconds)


def flow_of(node: Node, publisher: Node) -> Any:
    flows = node._stack_node.dissemination.flows  # type: ignore[attr-defined]
    return next(flow for flow in flows.values() if flow.root == publisher.id)


async def publish_while(publisher: Node, condition: Callable[[], bool], a_second: int) -> set[Any]:
    """At this rate; publishing never waits for long."""
    ids, loop = set(), asyncio.get_running_loop()
    deadline = loop.time() + 60
    while condition():
        began = loop.time()
        ids.add((await publisher.publish("t", BODY)).id)
        assert loop.time() - began < 5, "the publisher waits for one that is slow"
        assert loop.time() < deadline, "in vain"
        await asyncio.sleep(1 / a_second)
    return ids


def test_a_node_that_takes_less_than_is_published_is_cut_and_others_get_everything() -> None:
    """A megabyte a second; one in the middle of the tree takes a fiftieth of it. Its children leave it."""

    async def work() -> None:
        async with cluster(12) as nodes:
            publisher, others = nodes[0], nodes[1:]
            readers = {node: Reader(node) for node in others}
            await asyncio.sleep(0)
            published = await publish_while(publisher, lambda: not all(r.ids for r in readers.values()), 100)
            published |= await publish_while(
                publisher, lambda: not any(flow_of(n, publisher).targets() for n in others), 50
            )
            slow = max(others, key=lambda node: len(flow_of(node, publisher).targets()))
            dawdling = asyncio.create_task(dawdle(slow, 0.5))

            def cuts() -> int:
                return sum(node._hub.counters["slow peers cut"] for node in nodes if node is not slow)

            def has_children() -> bool:
                return any(flow_of(node, publisher).parent == slow.id for node in others if node is not slow)

            published |= await publish_while(publisher, lambda: not cuts() or has_children(), 100)
            for node in others:
                if node is not slow:
                    await until_here(lambda node=node: published <= readers[node].ids, "others lack something")  # type: ignore[misc]
                    assert readers[node].lost == 0
            dawdling.cancel()
            await asyncio.gather(dawdling, return_exceptions=True)
            await until_here(lambda: published <= readers[slow].ids, "the slow one gets the rest once it takes it")
            for reader in readers.values():
                reader.task.cancel()
            await asyncio.gather(*(reader.task for reader in readers.values()), return_exceptions=True)

    run(work(), fast=True)
