"""`epicast cluster` from start to end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from epicast.live.cluster import Cluster, Outcome, Plan, local_cluster
from epicast.live.running import on_stop, unless


@dataclass(frozen=True)
class Workload:
    messages: int
    rate: float
    payload_bytes: int
    publishers: int = 1


class Audience(Protocol):
    """Who is told how it goes."""

    def starting(self, how_far: str) -> None: ...
    def ready(self, cluster: Cluster, seconds: float) -> None: ...
    def played(self, outcome: Outcome) -> None: ...
    def ended_early(self, what: str) -> None: ...


async def conduct(plan: Plan, workload: Workload | None, seconds: float | None, audience: Audience) -> None:
    """Until it is stopped; with `seconds`, so long after all is ready and published."""
    with on_stop() as stopped:
        async with local_cluster(plan) as cluster:
            await unless(stopped, _play(cluster, workload, seconds, audience))


async def _play(cluster: Cluster, workload: Workload | None, seconds: float | None, audience: Audience) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await cluster.start(audience.starting)
    await cluster.ready()
    audience.ready(cluster, loop.time() - began)
    if workload is not None:
        load = workload
        audience.played(await cluster.play(load.messages, load.rate, load.payload_bytes, load.publishers))
    try:
        async with asyncio.timeout(seconds):
            await cluster.watch(audience.ended_early)
    except TimeoutError:
        pass
