"""Real processes that are killed, halted and cut off from each other in mid-stream: nobody who stays loses anything.

EPICAST_SOAK=1 goes on for longer and does it more often.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from epicast.live.sync import new_loop
from tests.live.chaos_cluster import DEADLINE_S, DETECTION_S, GO, STOP, ChaosCluster, Member, now_us, until
from tests.live.two_networks import NotPermitted, TwoNetworks

SOAK = os.environ.get("EPICAST_SOAK") == "1"
ROUNDS = 5 if SOAK else 1
RATE = 50
RESUME_S = 2 * DETECTION_S


def run(work: Callable[[ChaosCluster], Coroutine[Any, Any, None]], folder: Path, **settings: Any) -> None:
    async def whole() -> None:
        async with ChaosCluster(folder, **settings) as cluster:
            await work(cluster)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


async def begin(cluster: ChaosCluster, size: int) -> tuple[Member, int]:
    await cluster.grow(size)
    publisher = cluster.members[0]
    publisher.order(do="stream", topic="t", rate=RATE)
    await cluster.spread(RATE)
    return publisher, now_us()


async def end(cluster: ChaosCluster, publisher: Member) -> None:
    await cluster.settle([publisher])
    await cluster.stop()
    cluster.require_promises()


def require_resumed(since_us: int, members: Iterable[Member]) -> None:
    """Within twice the time that it takes to notice that somebody is gone."""
    until_us = now_us()
    gaps = {member.id: member.longest_gap_s(since_us, until_us) for member in members}
    print({"longest gap, s": max(gaps.values())})
    assert max(gaps.values()) < RESUME_S, gaps


def test_a_third_is_killed_and_comes_back(tmp_path: Path) -> None:
    async def work(cluster: ChaosCluster) -> None:
        publisher, since_us = await begin(cluster, 12)
        rng = Random(5)
        for _ in range(ROUNDS):
            doomed = rng.sample([member for member in cluster.up if member is not publisher], 4)
            for member in doomed:
                await member.kill()
            for member in doomed:
                await cluster.start(listen=member.address, stayed=False)
            await cluster.spread(3 * RATE)
            require_resumed(since_us, cluster.stayed)
        await end(cluster, publisher)

    run(work, tmp_path)


def test_inner_nodes_of_the_tree_are_killed(tmp_path: Path) -> None:
    async def work(cluster: ChaosCluster) -> None:
        publisher, since_us = await begin(cluster, 12)
        for _ in range(2 * ROUNDS):
            inner = await inner_nodes(cluster, publisher)
            await inner[0].kill()
            await cluster.spread(3 * RATE)
            require_resumed(since_us, cluster.stayed)
            if len(cluster.up) < 8:
                await cluster.start(stayed=False)
        await end(cluster, publisher)

    run(work, tmp_path, limits={"local_sockets": False})  # by TCP, as between machines


async def inner_nodes(cluster: ChaosCluster, publisher: Member) -> list[Member]:
    """Those with the most children first. A tree that is just being mended may have none for a moment."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            others = [member for member in cluster.up if member is not publisher]
            children = {member: len(await member.children(publisher.id)) for member in others}
            found = sorted((member for member in others if children[member]), key=lambda member: -children[member])
            if found:
                return found
            await asyncio.sleep(0.1)


def test_two_nodes_stand_still_and_go_on(tmp_path: Path) -> None:
    async def work(cluster: ChaosCluster) -> None:
        publisher, _ = await begin(cluster, 10)
        for _ in range(ROUNDS):
            since_us = now_us()
            halted = (await inner_nodes(cluster, publisher))[:2]
            for member in halted:
                member.signal(STOP)
            await asyncio.sleep(10 if SOAK else 5)  # longer than it takes to notice
            for member in halted:
                member.signal(GO)
            await cluster.spread(RATE)
            require_resumed(since_us, [member for member in cluster.stayed if member not in halted])
        await end(cluster, publisher)

    run(work, tmp_path)


def test_two_halves_are_cut_off_from_each_other_and_meet_again(tmp_path: Path) -> None:
    try:
        with TwoNetworks() as networks:
            run(partial(part_and_heal, networks), tmp_path, insecure=True)
    except NotPermitted as reason:
        pytest.skip(str(reason))


async def part_and_heal(networks: TwoNetworks, cluster: ChaosCluster) -> None:
    publishers = await begin_in_two(cluster, networks)
    since_us = now_us()
    for _ in range(ROUNDS):
        networks.pull()
        parted = {publisher.id: last_of(publisher) + RATE for publisher in publishers.values()}
        await asyncio.sleep(60 if SOAK else 2 * DETECTION_S)  # both halves give each other up
        assert not any(hears_all(member, parted) for member in cluster.up)
        networks.plug()
        healed_us, healed = now_us(), {publisher.id: last_of(publisher) for publisher in publishers.values()}
        await until(lambda healed=healed: all(hears_all(m, healed) for m in cluster.up), "still apart")
        print({"together again after, s": (now_us() - healed_us) / 1e6})
    until_us = now_us()
    await cluster.settle(publishers.values())
    for side, publisher in publishers.items():
        gaps = [longest_gap_s(m, publisher, since_us, until_us) for m in members_of(cluster, networks, side)]
        print({"longest gap within a half, s": max(gaps)})
        assert max(gaps) < RESUME_S
    await cluster.stop()
    cluster.require_promises()


async def begin_in_two(cluster: ChaosCluster, networks: TwoNetworks) -> dict[str, Member]:
    first: Member | None = None
    for side in "ab" * 6:
        given: dict[str, Any] = {"listen": f"{networks.addresses[side]}:0", "before": networks.within(side)}
        started = await cluster.start(seeds=[first.address] if first else [], **given)
        await until(lambda started=started: started.id, "a node did not come up")  # type: ignore[misc]
        first = first or started
    await cluster.joined()
    publishers = {side: members_of(cluster, networks, side)[-1] for side in "ab"}
    for publisher in publishers.values():
        publisher.order(do="stream", topic="t", rate=RATE / 2)
    await cluster.spread(RATE)
    return publishers


def members_of(cluster: ChaosCluster, networks: TwoNetworks, side: str) -> list[Member]:
    return [member for member in cluster.members if member.address.startswith(networks.addresses[side] + ":")]


def last_of(publisher: Member) -> int:
    return max(seq for source, seq in publisher.got if source == publisher.id)


def hears_all(member: Member, after: dict[str, int]) -> bool:
    """Has it got anything that each of the publishers has published since?"""
    return {source for source, seq in member.got if seq > after.get(source, seq)} == after.keys()


def longest_gap_s(member: Member, publisher: Member, since_us: int, until_us: int) -> float:
    times = sorted(at for (source, _), at in member.got.items() if source == publisher.id)
    inside = [since_us, *(at for at in times if since_us <= at <= until_us), until_us]
    return max(after - before for before, after in pairwise(inside)) / 1e6
