"""epicast: a node for the publisher and one for each subscriber, which join through the publisher's.

A subscriber takes all that waits at once, and blocks rather than lose a message. Nodes of one machine talk by Unix
sockets; what they do by TCP, as between machines, is measured beside it. With TLS the nodes have certificates
of one authority; signatures come on top of that: every publication is signed, and checked by every node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from os import getpid
from pathlib import Path

from epicast import Limits, Message, Node, Subscription, Tls
from epicast.cli.benchmarks.live_job import SIGNED, TOPIC, Task
from epicast.cli.benchmarks.live_systems import BY_TCP, WITH_KEYS, Take

PACED = False  # `publish` waits while a neighbour cannot take more, and that one while its own cannot
CLUSTER = "bench"
HOST = "127.0.0.1"
_numbers = count()  # of the nodes of this process


class EpicastPublisher:
    def __init__(self, node: Node) -> None:
        self.node, self.address = node, node.address

    async def publish(self, payloads: Sequence[bytes]) -> None:
        publish = self.node.publish
        for payload in payloads:
            await publish(TOPIC, payload)


@asynccontextmanager
async def publisher(task: Task) -> AsyncIterator[EpicastPublisher]:
    if _has_keys(task):
        from epicast.live import keys

        keys.init(_keys_at(task), cluster=CLUSTER)
    async with _node(task, "publisher") as node:
        yield EpicastPublisher(node)


@asynccontextmanager
async def subscriber(task: Task, take: Take) -> AsyncIterator[None]:
    name = f"subscriber-{getpid()}-{next(_numbers)}"
    async with _node(task, name, task.address) as node, node.subscribe(TOPIC, policy="block") as messages:
        await node.ready()
        reading = asyncio.create_task(_read(messages, take))
        yield
        reading.cancel()


async def _read(messages: Subscription, take: Take) -> None:
    async for batch in messages.batches():
        for message in batch:
            if type(message) is Message:  # in place of what was lost there is a gap; the tally notices
                take(message.payload)


def _node(task: Task, name: str, *seeds: str) -> Node:
    sign = task.job.system == SIGNED
    limits = Limits(local_sockets=task.job.system != BY_TCP)
    return Node(listen=f"{HOST}:0", seeds=seeds, cluster=CLUSTER, tls=_tls(task, name), sign=sign, limits=limits)


def _tls(task: Task, name: str) -> Tls | None:
    """With a certificate of its own for each node."""
    if not _has_keys(task):
        return None
    from epicast.live import keys

    keys.issue(_keys_at(task), name, hosts=[HOST])
    return Tls.from_folder(_keys_at(task), name)


def _has_keys(task: Task) -> bool:
    return task.job.system in WITH_KEYS


def _keys_at(task: Task) -> Path:
    return Path(task.folder) / "keys"
