"""The processes of a measurement: workers that are told what to do and report, and servers. All end with it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from epicast.cli.benchmarks import against
from epicast.cli.benchmarks.live_job import Task
from epicast.cli.benchmarks.live_lines import LINE_MAX, End, Order, Reports, decode_report, encode
from epicast.core.errors import EpicastError

PROC = Path("/proc")
START_S, END_S = 60.0, 10.0
LOOK_EVERY_S = 0.02

News = TypeVar("News")


class Worker:
    def __init__(self, name: str, process: asyncio.subprocess.Process, errors: Path) -> None:
        self.name, self.process, self.errors = name, process, errors

    @property
    def pid(self) -> int:
        return self.process.pid

    async def tell(self, order: Order) -> None:
        assert self.process.stdin is not None
        with suppress(ConnectionError):  # that it is gone is noticed by whoever listens
            self.process.stdin.write(encode(order) + b"\n")
            await self.process.stdin.drain()

    async def report(self) -> Reports:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            raise EpicastError(f"{self.name} ended: {last_line(self.errors)}")
        report: Reports = decode_report(line)
        return report

    async def hear(self, kind: type[News], timeout_s: float) -> News:
        """The next report of this kind; others are passed over."""
        try:
            async with asyncio.timeout(timeout_s):
                while not isinstance(report := await self.report(), kind):
                    pass
                return report
        except TimeoutError:
            raise EpicastError(f"{self.name}: no {kind.__name__} within {timeout_s:g} s") from None


@asynccontextmanager
async def worker(module: str, name: str, task: Task) -> AsyncIterator[Worker]:
    errors = Path(task.folder) / f"{name}.log"
    argument, python = msgspec.json.encode(task).decode(), task.job.python
    command = [sys.executable, "-m", f"epicast.cli.benchmarks.{module}", argument]
    if python:
        command = against.command(python, module, argument)
    with errors.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=LINE_MAX,
            start_new_session=True,  # Ctrl-C is for us; we end the others
            env=against.surroundings() if python else None,
        )
    found = Worker(name, process, errors)
    try:
        yield found
        await found.tell(End())
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await process.communicate()
    finally:
        await end(process)


@asynccontextmanager
async def server(command: list[str], port: int, folder: Path) -> AsyncIterator[int]:
    """Gives its process id, once it can be connected to."""
    errors = folder / "server.log"
    with errors.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
    try:
        async with asyncio.timeout(START_S):
            while not await _answers(port):
                if process.returncode is not None:
                    raise EpicastError(f"{Path(command[0]).name} ended: {last_line(errors)}")
                await asyncio.sleep(LOOK_EVERY_S)
        yield process.pid
    finally:
        await end(process)


async def end(process: asyncio.subprocess.Process) -> None:
    """Gently, if it can wait so long."""
    for stop in (process.terminate, process.kill):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                stop()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_S)


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def last_line(log: Path) -> str:
    """That says something: frames around tracebacks do not."""
    lines = [line.strip(" |+-") for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "it said nothing")


def processor_seconds(pids: Iterable[int]) -> float | None:
    """Of all of them together; None where the system does not tell."""
    try:
        ticks = sum(sum(map(int, _status(pid)[11:13])) for pid in pids)
    except OSError:
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def stolen_seconds() -> float:
    """Processor time that this machine wanted and its host gave to others, up to now; 0 where the system does not
    tell."""
    try:
        fields = (PROC / "stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _status(pid: int) -> list[str]:
    """The fields of `stat` behind the command, which is in parentheses and may hold spaces."""
    return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
