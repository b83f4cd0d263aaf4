"""A process that is halted, or takes little: others go on without it, and it gets what it missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epicast.live.node import Node
from epicast.stacks import stack as stacks
from tests.live.chaos_cluster import GO, STOP, ChaosCluster, Member, until
from tests.live.clusters import cluster, require_all, run, taking

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
        async with cluster(12) as nodes, taking(nodes[1:]) as takers:
            publisher, others = nodes[0], nodes[1:]

            def inner() -> list[Node]:
                return [node for node in others if flow_of(node, publisher).targets()]

            published = await publish_while(publisher, lambda: not all(taker.got for taker in takers), 100)
            published |= await publish_while(publisher, lambda: not inner(), 100)
            slow = max(inner(), key=lambda node: len(flow_of(node, publisher).targets()))
            dawdling = asyncio.create_task(dawdle(slow, 0.5))

            def cut() -> bool:
                return any(node._hub.counters["slow peers cut"] for node in nodes if node is not slow)

            def has_children() -> bool:
                return any(flow_of(node, publisher).parent == slow.id for node in others)

            published |= await publish_while(publisher, lambda: not cut() or has_children(), 100)
            await require_all([taker for taker in takers if taker.node is not slow], published)
            dawdling.cancel()
            await asyncio.gather(dawdling, return_exceptions=True)
            await require_all(takers, published)  # it gets the rest as soon as it takes it

    run(work(), fast=True)
