"""`epicast cluster` from start to end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from epicast.live.cluster import Cluster, Outcome, Plan, Summary, local_cluster
from epicast.live.member import Member
from epicast.live.running import on_stop, unless
from epicast.live.turmoil import Turmoil


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
    def changed(self, member: Member, what: str) -> None: ...
    def ended_early(self, what: str) -> None: ...
    def summed_up(self, summary: Summary) -> None: ...


async def conduct(plan: Plan, workload: Workload | None, seconds: float | None, audience: Audience) -> None:
    """Until it is stopped; with `seconds`, so long after all is ready and published."""
    with on_stop() as stopped:
        async with local_cluster(plan) as cluster:
            await unless(stopped, _play(cluster, workload, seconds, audience))
            summary = await cluster.summary()
            if summary is not None:
                audience.summed_up(summary)


async def _play(cluster: Cluster, workload: Workload | None, seconds: float | None, audience: Audience) -> None:
    loop, plan = asyncio.get_running_loop(), cluster.plan
    began = loop.time()
    await cluster.start(audience.starting)
    await cluster.ready()
    audience.ready(cluster, loop.time() - began)
    work = _work(cluster, workload, seconds, audience)
    if plan.kill_every_s is None and plan.add_every_s is None:
        await work
        return
    turmoil = Turmoil(
        cluster,
        audience.changed,
        kill_every_s=plan.kill_every_s,
        add_every_s=plan.add_every_s,
        spared=1 if workload is None else workload.publishers,
    )
    await _beside(work, turmoil.run())


async def _work(cluster: Cluster, workload: Workload | None, seconds: float | None, audience: Audience) -> None:
    if workload is not None:
        load = workload
        audience.played(await cluster.play(load.messages, load.rate, load.payload_bytes, load.publishers))
    try:
        async with asyncio.timeout(seconds):
            await cluster.watch(audience.ended_early)
    except TimeoutError:
        pass


async def _beside(work: Coroutine[Any, Any, None], endless: Coroutine[Any, Any, None]) -> None:
    """Until the work is done. What is endless ends with it; if it fails, so does the work."""
    tasks = [asyncio.create_task(work), asyncio.create_task(endless)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
