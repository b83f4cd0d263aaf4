"""zenoh: peers without a server, its Python package on top of a core in Rust.

The subscribers' peers connect to the publisher's and look for nobody else. A subscriber has a callback of the ordinary
kind, which zenoh calls from a thread of its own; channels are no quicker, callbacks from the core's threads much
slower. Congestion blocks the publisher, and small messages may share a frame.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import zenoh

from epicast.cli.benchmarks.live_job import TOPIC, Task
from epicast.cli.benchmarks.live_processes import free_port
from epicast.cli.benchmarks.live_systems import Take

PACED = False


class ZenohPublisher:
    def __init__(self, address: str, publisher: zenoh.Publisher) -> None:
        self.address, self.publisher = address, publisher

    async def publish(self, payloads: Sequence[bytes]) -> None:
        put = self.publisher.put
        for payload in payloads:
            put(payload)


@asynccontextmanager
async def publisher(task: Task) -> AsyncIterator[ZenohPublisher]:
    address = f"tcp/127.0.0.1:{free_port()}"
    with (
        zenoh.open(_config("listen", address)) as session,
        session.declare_publisher(TOPIC, congestion_control=zenoh.CongestionControl.BLOCK) as found,
    ):
        yield ZenohPublisher(address, found)


@asynccontextmanager
async def subscriber(task: Task, take: Take) -> AsyncIterator[None]:
    def on_sample(sample: zenoh.Sample) -> None:
        take(sample.payload.to_bytes())

    with zenoh.open(_config("connect", task.address)) as session, session.declare_subscriber(TOPIC, on_sample):
        yield


def _config(how: str, address: str) -> zenoh.Config:
    alone = {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
    settings = {"mode": "peer", "scouting": alone, "listen": {"endpoints": []}, how: {"endpoints": [address]}}
    return zenoh.Config.from_json5(json.dumps(settings))
