"""Reading and writing that may block, kept away from the loop.

Each call has a thread of its own, which ends with the process even if it is still blocked: nobody waits for a terminal
at which nobody types, or for a pipe that nobody reads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from select import select
from threading import Thread
from typing import Any, TypeVar

from epicast.core.errors import EpicastError

T = TypeVar("T")

CHUNK_BYTES = 1 << 16


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work(*args)
        except BaseException as found:
            error = found
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=run, name="epicast-blocking", daemon=True).start()
    return await future


async def write_all(handle: int, data: bytes) -> None:
    await in_thread(_write_all, handle, data)


def _write_all(handle: int, data: bytes) -> None:
    # Not through sys.stdout: its lock, held by a blocked thread, would keep the interpreter from ending.
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:  # somebody who shares it wants it so
            select([], [handle], [])
        except BrokenPipeError:
            raise
        except OSError as error:
            raise EpicastError(f"the output cannot be written: {error.strerror}") from None


def _read(handle: int) -> bytes:
    while True:
        try:
            return os.read(handle, CHUNK_BYTES)
        except BlockingIOError:
            select([handle], [], [])
        except OSError as error:
            raise EpicastError(f"the input cannot be read: {error.strerror}") from None


async def lines(handle: int, bytes_max: int) -> AsyncIterator[list[bytes]]:
    """All lines of a file as they come, without their ends; those that came together are one list."""
    begun: list[bytes] = []  # of a line whose end has not come
    size = 0
    while chunk := await in_thread(_read, handle):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > bytes_max:
            raise EpicastError(f"a line of more than {bytes_max:,} bytes: that is the limit of a message")
        if others:
            whole = [b"".join(begun), *others[:-1]]
            begun, size = [others[-1]], len(others[-1])
            yield whole
    if size:
        yield [b"".join(begun)]


async def everything(handle: int, bytes_max: int) -> bytes:
    parts, size = [], 0
    while chunk := await in_thread(_read, handle):
        parts.append(chunk)
        size += len(chunk)
        if size > bytes_max:
            raise EpicastError(f"more than {bytes_max:,} bytes: that is the limit of a message")
    return b"".join(parts)
