"""What the commands that run a node share: the loop, signals, and an end in good order."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from epicast.core.errors import EpicastError
from epicast.live.node import Node
from epicast.live.sync import new_loop

T = TypeVar("T")

SENT_S = 30.0
LEAVE_S = 8.0
LOOK_EVERY_S = 0.005

log = logging.getLogger("epicast")


def run(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop if it is installed."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)


@contextmanager
def on_stop() -> Iterator[asyncio.Event]:
    """Set by Ctrl-C or SIGTERM. A second one of a kind acts as usual."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    handled: list[signal.Signals] = []

    def stop(number: int) -> None:
        stopped.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
            if signal.getsignal(number) is not signal.SIG_IGN:  # whoever started us wants it to be ignored
                loop.add_signal_handler(number, stop, number)
                handled.append(number)
    try:
        yield stopped
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[Node]:
    """Like `async with node`, but a node that cannot leave in good order does not keep us for ever."""
    try:
        await node.start()
        yield node
    finally:
        try:
            async with asyncio.timeout(LEAVE_S):
                await node.stop()
        except TimeoutError:
            log.warning("not all connections could be closed within %.0f s", LEAVE_S)


async def unless(stopped: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work, or None if it was stopped."""
    doing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for each in (doing, stopping):
            each.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)


async def sent(node: Node, timeout_s: float = SENT_S) -> None:
    """Wait until the system has all that is to be sent."""
    links = node._hub.links
    try:
        async with asyncio.timeout(timeout_s):
            while any(link.waiting or (link.conn is not None and link.conn.waiting_bytes) for link in links.values()):
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise EpicastError(f"neighbours did not take all messages within {timeout_s:g} s; some may be lost") from None
