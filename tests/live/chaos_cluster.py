"""Nodes in processes of their own, and what is done to them; afterwards their traces are judged."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from epicast.pipeline import analysis
from epicast.pipeline.duck import DuckKernel
from epicast.trace.merge import find_journals, merge

ROOT = Path(__file__).resolve().parents[2]
DETECTION_S = 3.5  # the silence after which a neighbour is given up
DEADLINE_S = 60.0
PROMISED = ("integrity", "validity", "agreement")

Id = tuple[str, int]


async def until(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


class Member:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.id = self.address = ""
        self.got: dict[Id, int] = {}  # when
        self.twice: list[Id] = []
        self.gaps: list[Any] = []
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.stayed = True
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            told = json.loads(line)
            if "up" in told:
                self.id, self.address = told["up"], told["address"]
            elif "gaps" in told:
                self.gaps += told["gaps"]
            elif "got" in told:
                for source, seq, at_us in told["got"]:
                    if (source, seq) in self.got:
                        self.twice.append((source, seq))
                    self.got[source, seq] = at_us
            else:
                self.answers.put_nowait(told)

    def order(self, **what: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what).encode() + b"\n")

    async def ask(self, **what: Any) -> dict[str, Any]:
        self.order(**what)
        async with asyncio.timeout(DEADLINE_S):
            return await self.answers.get()

    async def children(self, root: str) -> list[str]:
        tree = (await self.ask(do="tree"))["tree"]
        return [child for flow in tree if flow["root"] == root for child in flow["children"]]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def kill(self) -> None:
        self.stayed = False
        self.process.kill()
        await self.process.wait()
        await self._reading

    async def stop(self) -> None:
        self.order(do="stop")
        async with asyncio.timeout(DEADLINE_S):
            code = await self.process.wait()
            await self._reading
        assert code == 0, f"{self.id} ended with {code}"

    def longest_gap_s(self, since_us: int, until_us: int) -> float:
        times = [since_us, *sorted(at for at in self.got.values() if since_us <= at <= until_us), until_us]
        return max(after - before for before, after in pairwise(times)) / 1e6


class ChaosCluster:
    """`async with ChaosCluster(folder) as cluster: await cluster.grow(12) ...`"""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.settings = folder, settings
        self.members: list[Member] = []
        self._numbers = count()

    async def __aenter__(self) -> ChaosCluster:
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self.members:
            if member.process.returncode is None:
                member.process.kill()
        for member in self.members:
            await member.process.wait()
            await member._reading

    @property
    def up(self) -> list[Member]:
        return [member for member in self.members if member.process.returncode is None]

    @property
    def stayed(self) -> list[Member]:
        return [member for member in self.up if member.stayed]

    def named(self, node_id: str) -> Member:
        return next(member for member in self.members if member.id == node_id)

    # Coming and going

    async def start(self, *, before: Sequence[str] = (), stayed: bool = True, **settings: Any) -> Member:
        """One more process, begun by the words `before`."""
        given: dict[str, Any] = {"listen": "127.0.0.1:0", **self.settings, **settings}
        given.setdefault("seeds", [member.address for member in self.up[:3]])
        given["trace"] = str(self.folder / f"node{next(self._numbers)}")
        member = Member(
            await asyncio.create_subprocess_exec(
                *before,
                sys.executable,
                "-m",
                "tests.live.chaos_node",
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=1 << 22,
            )
        )
        member.stayed = stayed
        self.members.append(member)
        member.order(**given)
        return member

    async def grow(self, size: int) -> None:
        """So many processes, all of which have neighbours."""
        first = await self.start(seeds=[])
        await until(lambda: first.id, "the first node did not come up")
        for _ in range(size - 1):
            await self.start(seeds=[first.address])
        await until(lambda: all(member.id for member in self.members), "a node did not come up")
        await self.joined()

    async def joined(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            for member in self.up:
                while not (await member.ask(do="tree"))["neighbours"]:
                    await asyncio.sleep(0.05)

    # Streams

    async def spread(self, some: int) -> None:
        """Until everyone gets what is published: from then on gaps count."""
        before = {member: len(member.got) for member in self.up}
        await until(
            lambda: all(len(member.got) >= before.get(member, 0) + some for member in self.up),
            "the stream stands still",
        )

    async def settle(self, publishers: Iterable[Member]) -> set[Id]:
        """Everyone that stayed gets all that was published; whoever came late gets the end of it."""
        published = [[(s, n) for s, n in (await member.ask(do="quiet"))["published"]] for member in publishers]
        wanted = {each for ids in published for each in ids}
        last = [ids[-1] for ids in published if ids]
        try:
            await until(lambda: all(wanted <= member.got.keys() for member in self.stayed), "messages were lost")
            await until(lambda: all(each in m.got for m in self.up for each in last), "a late node got no further")
        except AssertionError as error:
            for member in self.up:
                error.add_note(f"{member.id} lacks {len(wanted - member.got.keys())} of {len(wanted)}: {member.gaps}")
            raise
        return wanted

    async def stop(self) -> None:
        for member in list(self.up):
            await member.stop()

    # Judging

    def verdicts(self) -> dict[str, dict[str, Any]]:
        run = merge(find_journals(self.folder), self.folder / "merged", command=["chaos"]).require_complete()
        with DuckKernel(run) as kernel:
            found = analysis.analyse(kernel, run, "run").to_pylist()[0]
        return {verdict["guarantee"]: verdict for verdict in found["verdicts"]}

    def require_promises(self) -> dict[str, dict[str, Any]]:
        verdicts = self.verdicts()
        for name in PROMISED:
            verdict = verdicts[name]
            assert verdict["judged"], verdict
            assert verdict["checked"] > 0, verdict
            assert verdict["violations"] == 0, verdict
        assert [member.twice for member in self.members if member.twice] == []
        return verdicts


def now_us() -> int:
    return time.time_ns() // 1000


STOP, GO = signal.SIGSTOP, signal.SIGCONT
