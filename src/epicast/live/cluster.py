"""A cluster on this machine: many `epicast node` processes, one workload, and whether everybody got it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from epicast.core.config import parse_duration_us
from epicast.core.errors import EpicastError
from epicast.live.ids import PORT_MAX
from epicast.live.member import Member
from epicast.live.pages import get, get_status

HOST = "127.0.0.1"
TOPIC = "workload"
NODES_MAX = 200
PAYLOAD_BYTES_MAX = 1 << 18  # larger ones go in pieces, which are counted one by one
LOOK_EVERY_S = 0.1
STILL_S = 15.0
"""If nobody delivered anything for so long, what is missing does not come any more."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    nodes: int
    command: Sequence[str]  # what runs a node, to which its options are added
    stack: str = "brisa"
    trace: Path | None = None  # each node writes in a folder below it
    trace_level: str = "full"
    base_port: int | None = None  # the nodes' ports from here on, then the admin ports
    tls: bool = False
    areas: int = 1  # the nodes are dealt to them in turn
    far_delay: str = "25ms"  # between areas, one way
    order: Sequence[str] = ()  # as the nodes' option has it

    def check(self) -> None:
        if not 1 <= self.nodes <= NODES_MAX:
            raise EpicastError(f"nodes: expected 1 to {NODES_MAX}, got {self.nodes}")
        if not 1 <= self.areas <= self.nodes:
            raise EpicastError(f"areas: expected 1 to {self.nodes}, as many as there are nodes, got {self.areas}")
        if parse_duration_us(self.far_delay) is None:
            raise EpicastError(f"far-delay: expected a time like 25ms, got {self.far_delay!r}")
        if self.base_port is not None and not 1 <= self.base_port <= PORT_MAX + 1 - 2 * self.nodes:
            raise EpicastError(f"base-port: expected 1 to {PORT_MAX + 1 - 2 * self.nodes}, got {self.base_port}")
        if self.trace is not None and self.trace.exists() and (not self.trace.is_dir() or any(self.trace.iterdir())):
            raise EpicastError(f"{self.trace} is not empty: choose a new folder")


@dataclass(frozen=True)
class Outcome:
    """Of a workload."""

    messages: int
    payload_bytes: int
    publish_s: float
    delivered: dict[int, int] = field(default_factory=dict)  # by the number of the node
    duplicates: int = 0
    sent_near_bytes: int = 0  # by all nodes, to nodes of their own area
    sent_far_bytes: int = 0  # to other areas

    @property
    def missing(self) -> dict[int, int]:
        return {number: self.messages - count for number, count in self.delivered.items() if count < self.messages}

    @property
    def copies_per_delivery(self) -> float | None:
        """Receptions for each delivery that is not the publisher's own."""
        received = sum(self.delivered.values()) - self.messages
        return (received + self.duplicates) / received if received > 0 else None


class Cluster:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.members: list[Member] = []
        self._gone: set[int] = set()

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    # Start

    async def start(self, tell: Tell) -> None:
        """The first is the seed of all others, which start some at a time."""
        if self.plan.tls:
            self._make_keys()
        self.members.append(await self._start(1, ()))
        seat = asyncio.Semaphore(max(2, 2 * (os.cpu_count() or 1)))
        tell(f"1 of {self.plan.nodes}")

        async def one(number: int) -> None:
            async with seat:
                self.members.append(await self._start(number, ("--seed", self.members[0].address)))
                tell(f"{len(self.members)} of {self.plan.nodes}")

        starting = [asyncio.create_task(one(number)) for number in range(2, self.plan.nodes + 1)]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        self.members.sort(key=lambda member: member.number)

    async def _start(self, number: int, more: Sequence[str]) -> Member:
        plan = self.plan
        port = 0 if plan.base_port is None else plan.base_port + number - 1
        admin = 0 if plan.base_port is None else port + plan.nodes
        options = ["--json", "--orders", "--listen", f"{HOST}:{port}", "--admin", f"{HOST}:{admin}", *more]
        options += ["--stack", plan.stack]
        options += [part for order in plan.order for part in ("--order", order)]
        if plan.areas > 1:
            options += ["--area", f"area-{(number - 1) % plan.areas + 1}", "--far-delay", plan.far_delay]
        if plan.tls:
            options += ["--keys", str(self.keys), "--name", f"n{number}"]
        if plan.trace is not None:
            options += ["--trace", str(plan.trace / str(number)), "--trace-level", plan.trace_level]
        return await Member.start(number, [*plan.command, *options], self.folder / f"{number}.log")

    def _make_keys(self) -> None:
        from epicast.live import keys

        keys.init(self.keys, cluster="epicast", days=30)
        for name in ("client", *(f"n{number}" for number in range(1, self.plan.nodes + 1))):
            keys.issue(self.keys, name, hosts=[HOST], days=30)

    async def ready(self) -> None:
        """Until every node has neighbours."""
        waiting, timeout_s = list(self.members), 60 + 0.5 * self.plan.nodes
        try:
            async with asyncio.timeout(timeout_s):
                while waiting := await self._not_joined(waiting):
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            late = ", ".join(str(member.number) for member in waiting[:10])
            raise EpicastError(f"{len(waiting)} nodes did not join within {timeout_s:g} s: {late}") from None

    async def _not_joined(self, members: list[Member]) -> list[Member]:
        self._require_running(members)
        answers = await asyncio.gather(*(get(member.admin, "/healthz", 30.0) for member in members))
        return [member for member, (code, _) in zip(members, answers, strict=True) if code != 200]

    def _require_running(self, members: Sequence[Member]) -> None:
        for member in members:
            if member.ended:
                raise EpicastError(f"node {member.number} ended: {member.last_words()}")

    # Workload

    async def play(self, messages: int, rate: float, payload_bytes: int, publishers: int = 1) -> Outcome:
        """The first nodes publish; every node shall deliver."""
        before = await asyncio.gather(*(get_status(member.admin, 30.0) for member in self.members))
        share, more = divmod(messages, publishers)
        said = await asyncio.gather(
            *(
                self._publish(member, share + (at < more), rate / publishers, payload_bytes)
                for at, member in enumerate(self.members[:publishers])
            )
        )
        statuses = await self._settled(messages)
        return Outcome(
            messages,
            payload_bytes,
            max(said),
            {number: _counted(status, "delivered") for number, status in statuses.items()},
            sum(_counted(status, "duplicates") for status in statuses.values()),
            *(_sent(statuses.values(), where) - _sent(before, where) for where in ("near", "far")),
        )

    async def _publish(self, member: Member, messages: int, rate: float, payload_bytes: int) -> float:
        """How long it took."""
        await member.order(f"publish {TOPIC} {messages} {rate} {payload_bytes}")
        said = await member.answer(60.0 + (2 * messages / rate if rate else messages / 100))
        return float(said["seconds"])

    async def _settled(self, messages: int) -> dict[int, dict[str, Any]]:
        """What every node tells of itself once all have all messages, or no more come."""
        loop = asyncio.get_running_loop()
        before, changed = -1, loop.time()
        while True:
            self._require_running(self.members)
            found = await asyncio.gather(*(get_status(member.admin, 30.0) for member in self.members))
            counts = [_counted(status, "delivered") for status in found]
            if sum(counts) != before:
                before, changed = sum(counts), loop.time()
            if min(counts) >= messages or loop.time() - changed > STILL_S:
                return {member.number: status for member, status in zip(self.members, found, strict=True)}
            await asyncio.sleep(LOOK_EVERY_S)

    # While it runs, and the end

    async def watch(self, tell: Tell) -> None:
        """Until all nodes have ended, of which each is told. Nothing else is done about it: that is what clusters are
        for."""
        while not all(member.ended for member in self.members):
            for member in self.members:
                if member.ended and member.number not in self._gone:
                    self._gone.add(member.number)
                    tell(f"node {member.number} ({member.address}) ended: {member.last_words()}")
            await asyncio.sleep(LOOK_EVERY_S)

    async def end(self) -> list[Member]:
        """Those that could not leave in good order."""
        gone = [member for member in self.members if member.ended]
        timeout_s = 10.0 + 0.1 * len(self.members)
        await asyncio.gather(*(member.leave(timeout_s) for member in self.members), return_exceptions=True)
        return [member for member in self.members if member.code != 0 and member not in gone]

    def kill(self) -> None:
        for member in self.members:
            member.kill()


@asynccontextmanager
async def local_cluster(plan: Plan) -> AsyncIterator[Cluster]:
    """Ends all its processes, in good order if there is time for it."""
    plan.check()
    with TemporaryDirectory(prefix="epicast-cluster-") as folder:
        cluster = Cluster(plan, Path(folder))
        try:
            yield cluster
        finally:
            try:
                await cluster.end()
            finally:
                cluster.kill()


def _sent(statuses: Iterable[dict[str, Any]], where: str) -> int:
    return sum(int(status["sent_bytes"][where]) for status in statuses)


def _counted(status: dict[str, Any], name: str) -> int:
    return int(status["counters"].get(name, 0))
