"""A node for scripts and notebooks, without `async`: it lives in a thread of its own.

with epicast.SyncNode(seeds=["127.0.0.1:7946"]) as node:
    with node.subscribe("prices/*") as messages:
        node.publish("prices/eur", b"1.08")
        print(messages.get(timeout=5).payload)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from epicast.core.errors import EpicastError
from epicast.live.arguments import require
from epicast.live.events import EVENTS_MAX, Events, NodeEvent
from epicast.live.messages import Message, Receipt, Waiting
from epicast.live.node import Node, Payload
from epicast.live.subscription import Item, Subscription

if TYPE_CHECKING:
    from pathlib import Path

    from epicast.live.config import Limits, Policy, TraceLevel
    from epicast.live.joining import Discovery
    from epicast.live.local_calls import LocalCalls
    from epicast.live.tls import Tls
    from epicast.stacks.stack import Stack

T = TypeVar("T")

NOT_RUNNING = "the node is not running: use it within `with`, or call start first"


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's if it is installed: it is faster."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class SyncSubscription:
    """`with node.subscribe("prices/*") as messages: for message in messages: ...`

    As a `Subscription`, for code that is not a coroutine. Several threads may read it: each item goes to one of them.
    """

    def __init__(self, node: SyncNode, subscription: Subscription) -> None:
        self._node, self._subscription = node, subscription

    @property
    def lost(self) -> int:
        return self._subscription.lost

    def get(self, timeout: float | None = None) -> Item:
        """The next message or gap. TimeoutError if none comes in time; StopIteration never: a closed subscription
        raises EpicastError."""
        require(timeout=timeout)
        item = self._node._call(self._next(timeout))
        if item is None:
            raise EpicastError("the subscription is closed")
        return item

    async def _next(self, timeout: float | None) -> Item | None:
        if not self._subscription._opened:
            raise EpicastError("the subscription is not open: use `with node.subscribe(...) as messages`")
        async with asyncio.timeout(timeout):
            try:
                return await self._subscription.__anext__()
            except StopAsyncIteration:
                return None

    def __iter__(self) -> Iterator[Item]:
        while (item := self._node._call(self._next(None))) is not None:
            yield item

    def __enter__(self) -> SyncSubscription:
        self._node._call(self._subscription.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._node._soon(self._subscription.close)


class SyncEvents:
    """`for event in node.events(): ...`: as `Events`, for code that is not a coroutine."""

    def __init__(self, node: SyncNode, events: Events) -> None:
        self._node, self._events = node, events

    @property
    def lost(self) -> int:
        return self._events.lost

    def get(self, timeout: float | None = None) -> NodeEvent:
        """The next one. TimeoutError if none comes in time; EpicastError if they are closed."""
        require(timeout=timeout)
        event = self._node._call(self._next(timeout))
        if event is None:
            raise EpicastError("the events are closed")
        return event

    async def _next(self, timeout: float | None) -> NodeEvent | None:
        async with asyncio.timeout(timeout):
            return await anext(self._events, None)

    def __iter__(self) -> Iterator[NodeEvent]:
        while (event := self._node._call(self._next(None))) is not None:
            yield event

    def __enter__(self) -> SyncEvents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._node._soon(self._events.close)


class SyncNode:
    """`with epicast.SyncNode(...) as node: ...`: a `Node`, with its settings, for code that is not a coroutine."""

    def __init__(
        self,
        *,
        listen: str = "127.0.0.1:0",
        seeds: Sequence[str] = (),
        stack: str | Stack | Mapping[str, Any] = "brisa",
        cluster: str = "epicast",
        advertise: str | None = None,
        tls: Tls | None = None,
        sign: bool = False,
        insecure: bool = False,
        discovery: Sequence[Discovery | LocalCalls] = (),
        limits: Limits | Mapping[str, Any] | None = None,
        trace: str | Path | None = None,
        trace_level: TraceLevel = "full",
        area: str = "",
        order: str | Mapping[str, str] | None = None,
        order_settings: Mapping[str, Any] | None = None,
    ) -> None:
        """The settings are those of `Node`."""
        self._node = Node(
            listen=listen,
            seeds=seeds,
            stack=stack,
            cluster=cluster,
            advertise=advertise,
            tls=tls,
            sign=sign,
            insecure=insecure,
            discovery=discovery,
            limits=limits,
            trace=trace,
            trace_level=trace_level,
            area=area,
            order=order,
            order_settings=order_settings,
        )
        self._loop: asyncio.AbstractEventLoop | None = None  # while it runs
        self._thread: Thread | None = None
        self._lock = Lock()  # of these two

    def __enter__(self) -> SyncNode:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        with self._lock:
            if self._loop is not None:
                raise EpicastError("the node was started before: stop it first, or make another one")
            self._loop = new_loop()
            self._thread = Thread(target=self._loop.run_forever, name="epicast", daemon=True)
            self._thread.start()
        try:
            self._call(self._node.start())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        if self._loop is not None:
            try:
                self._call(self._node.stop())
            finally:
                self._end()

    def _end(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return  # another thread has stopped it
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    @property
    def id(self) -> str:
        return self._node.id

    @property
    def address(self) -> str:
        return self._node.address

    @property
    def neighbours(self) -> list[str]:
        async def look() -> list[str]:
            return self._node.neighbours

        return self._call(look()) if self._loop is not None else []

    def ready(self, timeout: float | None = 30.0) -> None:
        self._call(self._node.ready(timeout))

    def publish(
        self, topic: str, payload: Payload, *, headers: Mapping[str, str] | None = None, wait: bool = True
    ) -> Receipt:
        return self._call(self._node.publish(topic, payload, headers=headers, wait=wait))

    def subscribe(
        self,
        pattern: str = "**",
        *,
        policy: Policy = "drop-oldest",
        messages_max: int | None = None,
        bytes_max: int | None = None,
        order: str | None = None,
    ) -> SyncSubscription:
        """As `Node.subscribe`, to be used with `with`."""
        opened = self._node.subscribe(
            pattern, policy=policy, messages_max=messages_max, bytes_max=bytes_max, order=order
        )
        return SyncSubscription(self, opened)

    def events(self, events_max: int = EVENTS_MAX) -> SyncEvents:
        """As `Node.events`."""

        async def listen() -> Events:
            return self._node.events(events_max)

        return SyncEvents(self, self._call(listen()))

    def waiting(self, topic: str | None = None) -> list[Waiting]:
        """As `Node.waiting`."""

        async def look() -> list[Waiting]:
            return self._node.waiting(topic)

        return self._call(look())

    def take(self, message_id: tuple[str, int]) -> Message | None:
        """As `Node.take`."""

        async def take() -> Message | None:
            return self._node.take(message_id)

        return self._call(take())

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                work.close()
                raise EpicastError(NOT_RUNNING)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise EpicastError(NOT_RUNNING) from None
        except BaseException:  # Ctrl-C: what is still under way must not take a message that nobody gets
            future.cancel()
            raise

    def _soon(self, fn: Callable[[], None]) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(fn)


async def _cancel_others() -> None:
    """Threads that wait for something are told that it will not come."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
