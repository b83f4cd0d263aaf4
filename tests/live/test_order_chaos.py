"""Orders with real processes under kill -9, SIGSTOP and clocks that jump, judged by the checkers from the traces."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from epicast.ordering.epto_ids import EptoIdsConfig
from tests.live.chaos_cluster import GO, STOP, ChaosCluster, Member
from tests.live.test_chaos import SOAK, run

NODES = 32
PUBLISHERS = 4
RATE = 10  # messages a second, of each publisher
STILL_S = 10 if SOAK else 4
HOUR_S = 3600
PAYLOAD_WAIT_S = EptoIdsConfig().payload_wait_us / 1e6

CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "causal": ("causal", {}, ("fifo", "causal")),
    "total": ("total", {}, ("fifo", "causal", "total")),
}
if SOAK:
    CASES["fifo"] = ("fifo", {}, ("fifo",))
    CASES["total, global clock"] = ("total", {"total": {"balls": {"clock": "global"}}}, ("fifo", "causal", "total"))


@pytest.mark.parametrize("case", CASES)
def test_orders_survive(case: str, tmp_path: Path) -> None:
    order, settings, promised = CASES[case]

    async def work(cluster: ChaosCluster) -> None:
        await cluster.grow(NODES)
        publishers = cluster.members[:PUBLISHERS]
        for member in publishers:
            member.order(do="stream", topic="t", rate=RATE)
        await cluster.spread(PUBLISHERS * RATE)
        halted = cluster.members[-2:]
        await strike(cluster, publishers, halted)
        published = await quiet(publishers)
        steady = [member for member in cluster.stayed if member not in halted]
        await everybody_has(published, steady)
        await nobody_gets_more(cluster.up)
        await cluster.stop()
        verdicts = cluster.verdicts()
        for name in ("integrity", "validity", *promised):
            assert verdicts[name]["judged"], verdicts[name]
            assert verdicts[name]["checked"] > 0, verdicts[name]
            assert verdicts[name]["violations"] == 0, verdicts[name]
        holes = sum(len(published - member.got.keys()) for member in halted)
        print({"messages": len(published), "holes of those that stood still": holes})

    more = {"order_settings": settings} if settings else {}
    run(work, tmp_path, order=order, trace_level="deliveries", **more)


async def strike(cluster: ChaosCluster, publishers: list[Member], halted: list[Member]) -> None:
    """Some are killed, some stand still, and the calendars of some jump there and back."""
    for member in halted:
        member.signal(STOP)
    for member in cluster.members[8:12]:
        await member.kill()
    for member in (publishers[0], cluster.members[20]):
        member.order(do="clock", ahead_s=HOUR_S)
    await asyncio.sleep(STILL_S)  # as long as they stand still
    for member in halted:
        member.signal(GO)
    for _ in range(2):
        await cluster.start(stayed=False)
    publishers[1].order(do="clock", ahead_s=-HOUR_S)
    publishers[0].order(do="clock", ahead_s=0)
    await cluster.spread(2 * PUBLISHERS * RATE)


async def quiet(publishers: list[Member]) -> set[tuple[str, int]]:
    answers = [await member.ask(do="quiet") for member in publishers]
    return {(source, seq) for answer in answers for source, seq in answer["published"]}


async def nobody_gets_more(members: list[Member]) -> None:
    """A run is over when nothing more is delivered, and who was stopped before is owed nothing. Those that stood still
    wait for what they missed."""
    before = 0
    while (now := sum(len(member.got) for member in members)) > before:
        before = now
        await asyncio.sleep(PAYLOAD_WAIT_S + 1)


async def everybody_has(published: set[tuple[str, int]], members: list[Member]) -> None:
    """Those that were up and running all the time: agreement, which total order promises with high probability."""
    for _ in range(300):
        if all(published <= member.got.keys() for member in members):
            return
        await asyncio.sleep(0.1)
    lacking = {m.id: (sorted(published - m.got.keys()), m.gaps) for m in members if published - m.got.keys()}
    raise AssertionError(f"of {len(published)} messages lack: {lacking}")
