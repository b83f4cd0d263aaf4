"""Honest nodes and one hostile member, each a process of its own, and what a flood does to the nodes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from epicast.live.orders import protocols
from epicast.stacks import stack as stacks
from tests.live.attacker import ME
from tests.live.chaos_cluster import ROOT
from tests.live.floods import Field
from tests.live.test_dial_floods import Victims, victims

ANSWER_S = 60.0
HERE = "127.0.0.1:0"
RATE = 25.0  # messages of each publisher in a second


class Process:
    """A module that obeys lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.id = self.address = ""

    @classmethod
    async def start(cls, module: str, **settings: Any) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        found = cls(process)
        found.order(**settings)
        return found

    def order(self, **what: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what).encode() + b"\n")

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(ANSWER_S):
            line = await self.process.stdout.readline()
        assert line, "it ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def ask(self, do: str, **what: Any) -> dict[str, Any]:
        self.order(do=do, **what)
        return await self.answer()

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


class Phase(msgspec.Struct):
    """What the honest nodes saw in some seconds."""

    seconds: float
    latencies_us: list[int]
    turn_ms: float  # the longest that a node's loop was busy in one go, in processor time
    worked: float  # the share of a processor that the busiest node used
    files: list[int]  # open, of each node
    resident_bytes: list[int]
    counters: Counter[str]

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_us)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e3 if ordered else float("inf")


class FloodCluster:
    def __init__(self, nodes: list[Process], publishers: int, there: Victims, stack: str, keys: Path | None) -> None:
        self.nodes, self.there, self.keys = nodes, there, keys
        self.publishers = tuple(node.id for node in nodes[:publishers])
        loaded = stacks.load(stack)
        self.agrees = "agreement" in loaded.promises
        self.greeting: dict[str, Any] = {"stack": protocols(loaded), "node": ME}
        if keys is not None:
            self.greeting |= {"cluster": "prices", "signs": True}

    @asynccontextmanager
    async def member(self, flood: str, seed: int = 1) -> AsyncIterator[Process]:
        """The hostile member: it is in, and has done nothing yet."""
        first = self.nodes[0]
        member = await Process.start(
            "tests.live.flooder",
            address=first.address,
            flood=flood,
            field=msgspec.to_builtins(Field(first.id, self.publishers, self.there.port, seed)),
            greeting=self.greeting,
            keys=[str(self.keys), "evil"] if self.keys is not None else None,
        )
        try:
            await member.answer()
            yield member
        finally:
            await member.kill()

    async def phase(self, seconds: float) -> Phase:
        began = time.monotonic()
        await asyncio.sleep(seconds)
        taken = await self._each("take")
        passed = time.monotonic() - began
        counters: Counter[str] = Counter()
        for each in taken:
            counters.update(each["counters"])
        return Phase(
            passed,
            [latency for each in taken for some in each["latencies_us"].values() for latency in some],
            max(each["turn_ms"] for each in taken),
            max(each["worked_s"] for each in taken) / passed,
            [node.open_files() for node in self.nodes],
            [node.resident_bytes() for node in self.nodes],
            counters,
        )

    async def _each(self, do: str, nodes: Sequence[Process] | None = None, **what: Any) -> list[dict[str, Any]]:
        return await asyncio.gather(*(node.ask(do, **what) for node in nodes or self.nodes))

    async def publish(self) -> None:
        await self._each("publish", self.nodes[: len(self.publishers)], rate=RATE)

    async def warm_up(self) -> None:
        """Until everybody hears every publisher."""

        async def settled() -> bool:
            taken = await self._each("take")
            return all(each["neighbours"] for each in taken) and all(
                len(each["latencies_us"]) >= heard - (node in self.nodes[:heard])
                for node, each in zip(self.nodes, taken, strict=True)
            )

        heard = len(self.publishers)
        deadline = time.monotonic() + ANSWER_S
        while not await settled():
            assert time.monotonic() < deadline, "the cluster does not settle"
            await asyncio.sleep(0.5)

    async def joined(self) -> None:
        """Until nobody publishes to nobody."""
        deadline = time.monotonic() + ANSWER_S
        while not all(each["neighbours"] for each in await self._each("take")):
            assert time.monotonic() < deadline, "a node is alone"
            await asyncio.sleep(0.1)

    async def heard_all(self) -> None:
        """Nothing of what honest nodes published is lost; where the stack promises no agreement, none of it unnoticed.
        Then they are silent, until `publish`."""
        published = await self._each("pause", self.nodes[: len(self.publishers)])
        wanted = {node: told["published"] for node, told in zip(self.publishers, published, strict=True)}
        deadline = time.monotonic() + ANSWER_S
        while missing := self._missing(wanted, await self._each("take")):
            assert time.monotonic() < deadline, missing
            await asyncio.sleep(0.2)

    def _missing(self, wanted: dict[str, int], taken: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
        """Of each node and each source."""
        return [
            (node.id, source, count - known)
            for node, each in zip(self.nodes, taken, strict=True)
            for source, count in wanted.items()
            if source != node.id
            and (known := each["heard"].get(source, 0) + (0 if self.agrees else each["lost"].get(source, 0))) < count
        ]


@asynccontextmanager
async def flooded(
    *, nodes: int = 6, publishers: int = 4, stack: str = "brisa", keys: Path | None = None
) -> AsyncIterator[FloodCluster]:
    """They publish, and hear each other."""
    started: list[Process] = []
    settings: dict[str, Any] = {"listen": HERE, "stack": stack}
    if keys is not None:
        settings |= {"cluster": "prices", "sign": True}
    with victims() as there:
        try:
            for number in range(nodes):
                seeds = [started[0].address] if started else []
                its_keys = {"keys": [str(keys), f"n{number % 2 + 1}"]} if keys is not None else {}
                node = await Process.start("tests.live.flooded_node", **settings, **its_keys, seeds=seeds)
                started.append(node)
                up = await node.answer()
                node.id, node.address = up["up"], up["address"]
            cluster = FloodCluster(started, publishers, there, stack, keys)
            await cluster.joined()
            await cluster.publish()
            await cluster.warm_up()
            yield cluster
        finally:
            for each in started:
                await each.kill()
