"""Processes of a local cluster that are killed and added while it runs, at regular intervals.

Only processes that the cluster started itself are killed, through the handles that it has of them, with SIGKILL: they
say goodbye to nobody. The first half of the processes is spared, and so are all publishers: those are owed the whole
workload. There are never more than twice as many processes as in the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

from epicast.core.errors import EpicastError

if TYPE_CHECKING:
    from epicast.live.cluster import Cluster
    from epicast.live.member import Member

STARTED_MAX = 1000
"""Processes that a cluster starts in all: then none is added any more."""

Tell = Callable[["Member", str], None]
"""Is told of each process what became of it: killed, or added."""


class Turmoil:
    def __init__(
        self, cluster: Cluster, tell: Tell, *, kill_every_s: float | None, add_every_s: float | None, spared: int = 1
    ) -> None:
        self._cluster, self._tell = cluster, tell
        self._kill_every_s, self._add_every_s = kill_every_s, add_every_s
        size = cluster.plan.nodes
        self._spared = max(spared, -(-size // 2))
        self._most = 2 * size
        self._random = Random(size)  # the same victims for the same cluster, as far as timing allows

    async def run(self) -> None:
        """Until it is cancelled, or a process cannot be added."""
        work = [(self._kill_every_s, self._kill), (self._add_every_s, self._add)]
        tasks = [asyncio.create_task(_again_and_again(every_s, step)) for every_s, step in work if every_s is not None]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _kill(self) -> None:
        cluster = self._cluster
        doomed = [member for member in cluster.running if member.number > self._spared]
        if not doomed:
            return
        member = self._random.choice(doomed)
        await cluster.kill_one(member)
        self._tell(member, "killed")

    async def _add(self) -> None:
        cluster = self._cluster
        if len(cluster.running) >= self._most or cluster.started >= STARTED_MAX:
            return
        member = await cluster.add_one()
        if not member.ended:  # it may have been killed by now
            self._tell(member, "added")


async def _again_and_again(every_s: float, step: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(every_s)
        await step()


def require_interval(name: str, every_s: float | None) -> None:
    if every_s is not None and not 0.1 <= every_s <= 86_400:
        raise EpicastError(f"{name}: expected 0.1 to 86,400 seconds, got {every_s:g}")
