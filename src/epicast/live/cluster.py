"""A cluster on this machine: many `epicast node` processes, one workload, and whether everybody got it.

Processes may be killed and added while it runs (`turmoil.py`). Those that were there all the time *stayed*: all of the
workload is owed to them, and to them alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from epicast.core.config import parse_duration_us
from epicast.core.errors import EpicastError
from epicast.live.heard import Heard
from epicast.live.ids import PORT_MAX
from epicast.live.member import Member
from epicast.live.pages import get, get_status
from epicast.live.turmoil import require_interval

HOST = "127.0.0.1"
TOPIC = "workload"
NODES_MAX = 200
PAYLOAD_BYTES_MAX = 1 << 18  # larger ones go in pieces, which are counted one by one
LOOK_EVERY_S = 0.1
STILL_S = 15.0
"""If nobody delivered anything for so long, what is missing does not come any more."""

SUMMARY_S = 5.0
"""At the end a process that does not answer within so long is left out of the summary."""

Tell = Callable[[str], None]
T = TypeVar("T")


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
    settings: Sequence[str] = ()  # the same: NAME=VALUE
    kill_every_s: float | None = None
    add_every_s: float | None = None

    def check(self) -> None:
        if not 1 <= self.nodes <= NODES_MAX:
            raise EpicastError(f"nodes: expected 1 to {NODES_MAX}, got {self.nodes}")
        if not 1 <= self.areas <= self.nodes:
            raise EpicastError(f"areas: expected 1 to {self.nodes}, as many as there are nodes, got {self.areas}")
        if parse_duration_us(self.far_delay) is None:
            raise EpicastError(f"far-delay: expected a time like 25ms, got {self.far_delay!r}")
        if self.base_port is not None and not 1 <= self.base_port <= PORT_MAX + 1 - 2 * self.nodes:
            raise EpicastError(f"base-port: expected 1 to {PORT_MAX + 1 - 2 * self.nodes}, got {self.base_port}")
        require_interval("kill-every", self.kill_every_s)
        require_interval("add-every", self.add_every_s)
        if self.trace is not None and self.trace.exists() and (not self.trace.is_dir() or any(self.trace.iterdir())):
            raise EpicastError(f"{self.trace} is not empty: choose a new folder")


@dataclass(frozen=True)
class Outcome:
    """Of a workload."""

    messages: int
    payload_bytes: int
    publish_s: float
    delivered: dict[int, int] = field(default_factory=dict)  # by the number of each node that stayed
    duplicates: int = 0
    sent_near_bytes: int = 0  # by all nodes, to nodes of their own area
    sent_far_bytes: int = 0  # to other areas
    heard: Heard = field(default_factory=Heard)  # by the subscribers of these nodes

    @property
    def missing(self) -> dict[int, int]:
        return {number: self.messages - count for number, count in self.delivered.items() if count < self.messages}

    @property
    def copies_per_delivery(self) -> float | None:
        """Receptions for each delivery that is not the publisher's own."""
        received = sum(self.delivered.values()) - self.messages
        return (received + self.duplicates) / received if received > 0 else None


@dataclass(frozen=True)
class Summary:
    """Of all that a cluster did, as its processes tell it at the end; those that are gone tell nothing any more."""

    seconds: float  # since all were ready
    running: int
    killed: int
    added: int
    published: int
    delivered: int
    duplicates: int
    heard: Heard


class Cluster:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.members: list[Member] = []
        self.started = 0  # processes in all
        self._gone: set[int] = set()
        self._killed: set[int] = set()  # by us
        self._first: tuple[int, ...] = ()  # the numbers of those that were there when all were ready
        self._ready_s = 0.0

    @property
    def admins(self) -> Path:
        """A file with the admin addresses of all processes that run, for `epicast top --admin @FILE`."""
        return self.folder / "admins"

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if not member.ended and member.number not in self._killed]

    @property
    def stayed(self) -> list[Member]:
        """Those that were there from the beginning and that we did not kill."""
        return [member for member in self.members if member.number in self._first and member.number not in self._killed]

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
        self.started += 1
        planned = plan.base_port is not None and number <= plan.nodes  # one that is added later takes a free port
        port = (plan.base_port or 0) + number - 1 if planned else 0
        admin = port + plan.nodes if planned else 0
        options = ["--json", "--orders", "--listen", f"{HOST}:{port}", "--admin", f"{HOST}:{admin}", *more]
        options += ["--stack", plan.stack]
        options += [part for order in plan.order for part in ("--order", order)]
        options += [part for setting in plan.settings for part in ("--set", setting)]
        if plan.areas > 1:
            options += ["--area", f"area-{(number - 1) % plan.areas + 1}", "--far-delay", plan.far_delay]
        if plan.tls:
            options += ["--keys", str(self.keys), "--name", f"n{number}"]
        if plan.trace is not None:
            options += ["--trace", str(plan.trace / str(number)), "--trace-level", plan.trace_level]
        member = await Member.start(number, [*plan.command, *options], self.folder / f"{number}.log")
        await member.ask("listen", "listening", SUMMARY_S * 4)
        return member

    def _make_keys(self) -> None:
        from epicast.live import keys

        keys.init(self.keys, cluster="epicast", days=30)
        for name in ("client", *(f"n{number}" for number in range(1, self.plan.nodes + 1))):
            self._issue(name)

    def _issue(self, name: str) -> None:
        from epicast.live import keys

        keys.issue(self.keys, name, hosts=[HOST], days=30)

    async def ready(self) -> None:
        """Until every node has neighbours."""
        await self._until_joined(self.members)
        self._first = tuple(member.number for member in self.members)
        self._ready_s = asyncio.get_running_loop().time()
        self._write_admins()

    def _write_admins(self) -> None:
        text = "".join(f"{member.admin}\n" for member in self.running)
        fresh = self.admins.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.admins)  # whoever reads it finds all of it

    async def _until_joined(self, members: Sequence[Member]) -> None:
        waiting, timeout_s = list(members), 60 + 0.5 * self.plan.nodes
        try:
            async with asyncio.timeout(timeout_s):
                while waiting := await self._not_joined(waiting):
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            late = ", ".join(str(member.number) for member in waiting[:10])
            raise EpicastError(f"{len(waiting)} nodes did not join within {timeout_s:g} s: {late}") from None

    async def _not_joined(self, members: list[Member]) -> list[Member]:
        asked = [get(member.admin, "/healthz", 30.0) for member in members]
        answers = await self._answers(members, asked)
        return [member for member, answer in answers if answer[0] != 200]

    async def _answers(self, members: Sequence[Member], asked: Sequence[Awaitable[T]]) -> list[tuple[Member, T]]:
        """One that we kill meanwhile is left out, and one that ends by itself is an error."""
        answers = await asyncio.gather(*asked, return_exceptions=True)
        self._require_running(members)
        found: list[tuple[Member, T]] = []
        for member, answer in zip(members, answers, strict=True):
            if not isinstance(answer, BaseException):
                found.append((member, answer))
            elif member.number not in self._killed:
                raise answer
        return found

    def _require_running(self, members: Sequence[Member]) -> None:
        for member in members:
            if member.ended and member.number not in self._killed:
                raise EpicastError(f"node {member.number} ended: {member.last_words()}")

    # Workload

    async def play(self, messages: int, rate: float, payload_bytes: int, publishers: int = 1) -> Outcome:
        """The first nodes publish; every node shall deliver."""
        before = await self._statuses(self.stayed)
        share, more = divmod(messages, publishers)
        said = await asyncio.gather(
            *(
                self._publish(member, share + (at < more), rate / publishers, payload_bytes)
                for at, member in enumerate(self.members[:publishers])
            )
        )
        statuses = await self._settled(messages)
        heard = await self._heard([member for member in self.stayed if member.number in statuses])
        return Outcome(
            messages=messages,
            payload_bytes=payload_bytes,
            publish_s=max(said),
            delivered={number: _counted(status, "delivered") for number, status in statuses.items()},
            duplicates=sum(_counted(status, "duplicates") for status in statuses.values()),
            sent_near_bytes=_gained(before, statuses, "near"),
            sent_far_bytes=_gained(before, statuses, "far"),
            heard=heard,
        )

    async def _publish(self, member: Member, messages: int, rate: float, payload_bytes: int) -> float:
        """How long it took."""
        order = f"publish {TOPIC} {messages} {rate} {payload_bytes}"
        said = await member.ask(order, "published", 60.0 + (2 * messages / rate if rate else messages / 100))
        return float(said["seconds"])

    async def _settled(self, messages: int) -> dict[int, dict[str, Any]]:
        """What every node that stays tells of itself once all have all messages, or no more come."""
        loop = asyncio.get_running_loop()
        before, changed = -1, loop.time()
        while True:
            found = await self._statuses(self.stayed)
            counts = [_counted(status, "delivered") for status in found.values()]
            if sum(counts) != before:
                before, changed = sum(counts), loop.time()
            if min(counts) >= messages or loop.time() - changed > STILL_S:
                return found
            await asyncio.sleep(LOOK_EVERY_S)

    async def _statuses(self, members: Sequence[Member]) -> dict[int, dict[str, Any]]:
        """By number."""
        asked = [get_status(member.admin, 30.0) for member in members]
        return {member.number: status for member, status in await self._answers(members, asked)}

    async def _heard(self, members: Sequence[Member]) -> Heard:
        """By the subscribers of these, together."""
        total = Heard()
        asked = (member.ask("heard", "steps", SUMMARY_S) for member in members)
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, dict):
                total.join(answer)
            elif not isinstance(answer, EpicastError):
                raise answer
        return total

    # Turmoil

    async def kill_one(self, member: Member) -> None:
        self._killed.add(member.number)
        self._gone.add(member.number)
        member.kill()
        await member.gone()
        self._write_admins()

    async def add_one(self) -> Member:
        """Once it has joined."""
        number = self.members[-1].number + 1
        if self.plan.tls:
            self._issue(f"n{number}")
        member = await self._start(number, ("--seed", self.members[0].address))
        self.members.append(member)
        await self._until_joined([member])
        self._write_admins()
        return member

    # While it runs, and the end

    async def watch(self, tell: Tell) -> None:
        """Until all nodes have ended, of which each is told. Nothing else is done about it: that is what clusters are
        for."""
        while self.running:
            for member in self.members:
                if member.ended and member.number not in self._gone:
                    self._gone.add(member.number)
                    tell(f"node {member.number} ({member.address}) ended: {member.last_words()}")
            await asyncio.sleep(LOOK_EVERY_S)

    async def summary(self) -> Summary | None:
        """As far as the processes that run still answer; None before all were ready."""
        if not self._first:
            return None
        members = self.running
        answers = await asyncio.gather(
            *(get_status(member.admin, SUMMARY_S) for member in members), return_exceptions=True
        )
        statuses = [answer for answer in answers if isinstance(answer, dict)]
        return Summary(
            seconds=asyncio.get_running_loop().time() - self._ready_s,
            running=len(members),
            killed=len(self._killed),
            added=sum(member.number > self.plan.nodes for member in self.members),
            published=sum(_counted(status, "published") for status in statuses),
            delivered=sum(_counted(status, "delivered") for status in statuses),
            duplicates=sum(_counted(status, "duplicates") for status in statuses),
            heard=await self._heard(members),
        )

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


def _gained(before: Mapping[int, dict[str, Any]], after: Mapping[int, dict[str, Any]], where: str) -> int:
    """Bytes sent between two looks, by those that were there at both."""
    both = [number for number in after if number in before]
    return sum(int(after[n]["sent_bytes"][where]) - int(before[n]["sent_bytes"][where]) for n in both)


def _counted(status: dict[str, Any], name: str) -> int:
    return int(status["counters"].get(name, 0))
