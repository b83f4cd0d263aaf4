"""NATS: one server, and nats-py, which speaks to it on asyncio.

A subscription hands messages to a coroutine: its other ways, an iterator and `next_msg`, start a task for each message.
The publisher leaves the flushing to the client, which sends what has gathered whenever the loop gets a turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from epicast.cli.benchmarks.live_job import TOPIC, Task
from epicast.cli.benchmarks.live_systems import Take

PACED = True  # the server drops the connection of a subscriber that falls behind


def server_arguments(folder: Path, port: int) -> list[str]:
    config = folder / "nats.conf"
    config.write_text(f'listen: "127.0.0.1:{port}"\n', encoding="utf-8")
    return ["--config", str(config)]


class NatsPublisher:
    def __init__(self, address: str, client: Client) -> None:
        self.address, self.client = address, client

    async def publish(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            await self.client.publish(TOPIC, payload)


@asynccontextmanager
async def publisher(task: Task) -> AsyncIterator[NatsPublisher]:
    async with await nats.connect(f"nats://{task.address}") as client:
        yield NatsPublisher(task.address, client)


@asynccontextmanager
async def subscriber(task: Task, take: Take) -> AsyncIterator[None]:
    async def on_message(message: Msg) -> None:
        take(message.data)

    async with await nats.connect(f"nats://{task.address}") as client:
        await client.subscribe(TOPIC, cb=on_message)
        await client.flush()
        yield
