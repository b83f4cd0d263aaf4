"""A process that is halted: others go on without it, and it gets what it missed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from epicast.live.config import Limits
from epicast.live.node import Node
from epicast.stacks import stack as stacks
from tests.live.chaos_cluster import GO, STOP, ChaosCluster, Member, until
from tests.live.clusters import run

NEVER = "5min"
BODY = bytes(10_000)
COUNT = 350  # much more than the high mark, less than may wait for who is stuck


async def leaf(cluster: ChaosCluster, node: Node) -> Member:
    """A child of the publisher that has no children of its own."""
    dissemination = node._stack_node.dissemination
    while True:
        for flow in dissemination.flows.values():  # type: ignore[attr-defined]
            for child in flow.targets():
                if not await cluster.named(child).children(node.id):
                    return cluster.named(child)
        await node.publish("t", b"x")
        await asyncio.sleep(0.1)


def test_others_do_not_wait_for_a_peer_that_is_stuck(tmp_path: Path) -> None:
    """Nothing ends the link to it here: neither the transport nor the membership gives it up."""
    stack = stacks.load("brisa", {"membership": {"silence_us": NEVER}})
    limits = Limits(stall_us=300_000_000, slow_us=300_000_000)

    async def work() -> None:
        async with ChaosCluster(tmp_path, overrides={"membership": {"silence_us": NEVER}}) as cluster:
            await cluster.grow(3)
            async with Node(seeds=[cluster.members[0].address], stack=stack, limits=limits) as node:
                await node.ready()
                halted = await leaf(cluster, node)
                halted.signal(STOP)
                published = {(await node.publish("t", BODY)).id for _ in range(COUNT)}
                others = [member for member in cluster.members if member is not halted]
                await until(lambda: all(published <= member.got.keys() for member in others), "others wait for it")
                assert not published & halted.got.keys()
                assert node._hub.counters["slow peers cut"] == 0
                assert not node._hub.congestion
                halted.signal(GO)
                await until(lambda: published <= halted.got.keys(), "it lacks what it missed")
                assert [member.gaps for member in cluster.members] == [[], [], []]

    run(work(), fast=True)
