"""Connections that end without a goodbye, or without a sign: streams go on, and nobody misses anything."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from epicast.live.config import Limits
from epicast.live.connection import Connection
from epicast.live.node import Node
from tests.live.clusters import cluster, require_all, run, taking, until

SILENCE_S = 3.5  # after which a neighbour is given up


async def publish(node: Node, seconds: float) -> set[Any]:
    loop, ids = asyncio.get_running_loop(), set()
    end = loop.time() + seconds
    while loop.time() < end:
        ids.add((await node.publish("t", bytes(1000))).id)
        await asyncio.sleep(0.01)
    return ids


def reset(conn: Connection) -> None:
    """The other side sees a reset instead of an end."""
    link = conn.transport.get_extra_info("socket")
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.transport.abort()


@contextmanager
def half_open(conns: list[Connection]) -> Iterator[None]:
    """This side has lost its connections, and the other side is told nothing: the system keeps them open."""
    kept = [os.dup(conn.transport.get_extra_info("socket").fileno()) for conn in conns]
    for conn in conns:
        conn.transport.abort()
    try:
        yield
    finally:
        for number in kept:
            os.close(number)


@pytest.mark.parametrize("fast", [False, True])
def test_links_that_are_reset_come_back_and_nothing_is_lost(fast: bool) -> None:
    async def work() -> None:
        by_tcp = Limits(local_sockets=False)  # only there can one side ask for a reset
        async with cluster(6, limits=by_tcp) as nodes, taking(nodes) as takers:
            chance = random.Random(7)
            publishing = asyncio.create_task(publish(nodes[0], 4.0))
            for _ in range(15):
                await asyncio.sleep(0.2)
                conns = [conn for node in nodes for conn in node._hub.connections() if not conn.closing]
                reset(chance.choice(conns))
            await require_all(takers, await publishing)
            assert sum(node._hub.counters["ended: Connection reset by peer"] for node in nodes) > 0
            await until(lambda: all(node.neighbours for node in nodes))

    run(work(), fast=fast)


@pytest.mark.parametrize("local_sockets", [False, True])
def test_links_of_which_only_one_side_knows_are_given_up(local_sockets: bool) -> None:
    """Its neighbours hear nothing more on the old ones, and it dials new ones meanwhile."""

    async def work() -> None:
        limits = Limits(local_sockets=local_sockets)
        async with cluster(6, limits=limits) as nodes, taking(nodes) as takers:
            await publish(nodes[0], 0.3)
            victim = nodes[2]
            lost = [conn.peer for conn in victim._hub.connections()]
            assert lost
            stale = [conn for node in nodes for conn in node._hub.connections() if conn.peer == victim.id]
            with half_open(victim._hub.connections()):
                published = await publish(nodes[0], 2 * SILENCE_S)
                await until(lambda: all(conn.ended for conn in stale), "a neighbour still believes in the old link")
                await until(lambda: victim.neighbours, "it is alone")
                await require_all(takers, published)

    run(work(), fast=True)
