"""One process of a local cluster: `epicast node`, started by us, which ends with us whatever happens to us."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, parse_address

START_S = 60.0
LINE_BYTES_MAX = 1 << 16


class Member:
    def __init__(self, number: int, process: asyncio.subprocess.Process, log: Path) -> None:
        self.number, self.log = number, log
        self._process = process
        self.address, self.id = "", ""
        self.admin = Address("", 0)

    @classmethod
    async def start(cls, number: int, command: Sequence[str], log: Path) -> Member:
        """Once it listens. Its stdin stays open: it leaves when that ends, even if we are killed."""
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=LINE_BYTES_MAX,
                start_new_session=True,  # Ctrl-C is for us; we end the others
            )
        member = cls(number, process, log)
        try:
            said = await member.answer(START_S)
        except BaseException:
            member.kill()
            await process.wait()
            raise
        member.address, member.id, member.admin = said["address"], said["id"], parse_address(said["admin"])
        return member

    async def order(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):  # that it is gone is noticed by whoever waits for the answer
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()

    async def ask(self, line: str, key: str, timeout_s: float) -> dict[str, Any]:
        """The answer that has this key: one to an order that was given up may come before it."""
        await self.order(line)
        while key not in (said := await self.answer(timeout_s)):
            pass
        return said

    async def answer(self, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout_s):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise EpicastError(
                f"node {self.number} did not answer within {timeout_s:g} s: {self.last_words()}"
            ) from None
        if not line:
            raise EpicastError(f"node {self.number} ended: {self.last_words()}")
        said: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        if "error" in said:
            raise EpicastError(f"node {self.number}: {said['error']}")
        return said

    # The end

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def code(self) -> int | None:
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    async def leave(self, timeout_s: float) -> None:
        """In good order, or else by force."""
        assert self._process.stdin is not None
        if self.ended:
            return
        await self.order("leave")
        self._process.stdin.close()
        for force in (None, self._process.terminate, self._process.kill):
            if force is not None and not self.ended:
                with suppress(ProcessLookupError):
                    force()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), timeout_s)
                return

    async def gone(self) -> None:
        await self._process.wait()

    def kill(self) -> None:
        if not self.ended:
            with suppress(ProcessLookupError):
                self._process.kill()

    def last_words(self) -> str:
        """Why it ended, as far as that can be told."""
        if self.code is not None and self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].removeprefix("epicast: error: ") if lines else "it said nothing"
