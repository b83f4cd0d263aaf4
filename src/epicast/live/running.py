"""What the commands that run a node share: the loop, signals, and joining with an answer to why it failed."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from epicast.core.errors import EpicastError
from epicast.live.hello import Refusal, decode, encode
from epicast.live.ids import Address
from epicast.live.node import Node
from epicast.live.sync import new_loop
from epicast.wire.codec import HEADER_BYTES

T = TypeVar("T")

ASKED_MAX, ASK_S = 3, 2.0
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


async def join(node: Node, timeout_s: float) -> None:
    try:
        await node.ready(timeout_s)
    except EpicastError:
        raise EpicastError(f"nobody let us in within {timeout_s:g} s: {await why_alone(node)}") from None


async def why_alone(node: Node) -> str:
    seeds = await node._seeds.addresses(asyncio.get_running_loop())
    if not seeds:
        if node._seeds:
            return "the seeds have no addresses; are their names right?"
        return f"nobody of cluster {node.cluster!r} was heard on the local network"
    return "; ".join([f"{seed}: {await _what_of(node, seed)}" for seed in seeds[:ASKED_MAX]])


async def _what_of(node: Node, seed: Address) -> str:
    try:
        async with asyncio.timeout(ASK_S):
            return await _asked(node, seed)
    except TimeoutError:
        return "no answer"
    except (OSError, EOFError, EpicastError) as error:
        return getattr(error, "strerror", None) or "it speaks another language; TLS on one side only?"


async def _asked(node: Node, seed: Address) -> str:
    reader, writer = await asyncio.open_connection(seed.host, seed.port)
    try:
        if node._tls is not None:
            return "it answers, but does not let us in; are the keys of the same authority, and for our addresses?"
        body = encode(node._hub.greeting)
        writer.write(len(body).to_bytes(HEADER_BYTES, "big") + body)
        size = int.from_bytes(await reader.readexactly(HEADER_BYTES), "big")
        said = decode(await reader.readexactly(min(size, 4096)))
        return f"refused: {said.reason}" if isinstance(said, Refusal) else "it answers, but we are no neighbours yet"
    finally:
        writer.transport.abort()


async def sent(node: Node, timeout_s: float = SENT_S) -> None:
    """Wait until the system has all that is to be sent."""
    links = node._hub.links
    try:
        async with asyncio.timeout(timeout_s):
            while any(link.waiting or (link.conn is not None and link.conn.waiting_bytes) for link in links.values()):
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise EpicastError(f"neighbours did not take all messages within {timeout_s:g} s; some may be lost") from None
