"""Redis publish/subscribe: one server, and redis-py on asyncio with its parser in C.

Chosen by measurement. `parse_response` gives what the parser found; `listen` wraps each message once more. The older
protocol, version 2, carries messages as plain arrays: twice as many a second as version 3. The publisher sends a batch
as one pipeline and waits for its answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from epicast.cli.benchmarks.live_job import TOPIC, Task
from epicast.cli.benchmarks.live_systems import Take

PACED = True  # what waits for a subscriber grows in the server


def server_arguments(folder: Path, port: int) -> list[str]:
    """Nothing on disk. No limit on what waits for a subscriber, at which the server would cut it: the window does."""
    config = folder / "redis.conf"
    lines = (
        "bind 127.0.0.1",
        f"port {port}",
        f"dir {folder}",
        'save ""',
        "appendonly no",
        "client-output-buffer-limit pubsub 0 0 0",
    )
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [str(config)]


class RedisPublisher:
    def __init__(self, address: str, client: Redis) -> None:
        self.address, self.client = address, client

    async def publish(self, payloads: Sequence[bytes]) -> None:
        if len(payloads) == 1:
            await self.client.publish(TOPIC, payloads[0])
            return
        async with self.client.pipeline(transaction=False) as pipeline:
            for payload in payloads:
                pipeline.publish(TOPIC, payload)
            await pipeline.execute()


@asynccontextmanager
async def publisher(task: Task) -> AsyncIterator[RedisPublisher]:
    async with _client(task.address) as client:
        yield RedisPublisher(task.address, client)


@asynccontextmanager
async def subscriber(task: Task, take: Take) -> AsyncIterator[None]:
    async with _client(task.address) as client, client.pubsub() as subscription:
        await subscription.subscribe(TOPIC)
        reading = asyncio.create_task(_read(subscription, take))
        yield
        reading.cancel()


async def _read(subscription: Any, take: Take) -> None:
    while True:
        kind, _, content = await subscription.parse_response(block=True)
        if kind == b"message":
            take(content)


def _client(address: str) -> Redis:
    host, _, port = address.partition(":")
    return Redis(host=host, port=int(port), protocol=2)
