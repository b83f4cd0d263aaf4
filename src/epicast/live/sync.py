"""A node for scripts and notebooks, without `async`: it lives in a thread of its own.

with epicast.SyncNode(seeds=["127.0.0.1:7946"]) as node:
    with node.subscribe("prices/*") as messages:
        node.publish("prices/eur", b"1.08")
        print(messages.get(timeout=5).payload)
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

from epicast.core.errors import EpicastError
from epicast.live.messages import Message, Receipt, Waiting
from epicast.live.node import Node
from epicast.live.subscription import Item, Subscription

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's if it is installed: it is faster."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class SyncSubscription:
    def __init__(self, node: SyncNode, subscription: Subscription) -> None:
        self._node, self._subscription = node, subscription

    @property
    def lost(self) -> int:
        return self._subscription.lost

    def get(self, timeout: float | None = None) -> Item:
        """The next message or gap. TimeoutError if none comes in time; StopIteration never: a closed subscription
        raises EpicastError."""
        return self._node._call(self._next(timeout))

    async def _next(self, timeout: float | None) -> Item:
        async with asyncio.timeout(timeout):
            try:
                return await self._subscription.__anext__()
            except StopAsyncIteration:
                raise EpicastError("the subscription is closed") from None

    def __iter__(self) -> Iterator[Item]:
        while True:
            try:
                yield self.get()
            except EpicastError:
                return

    def __enter__(self) -> SyncSubscription:
        self._node._call(self._subscription.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._node._soon(self._subscription.close)


class SyncNode:
    """Takes what `Node` takes."""

    def __init__(self, **settings: Any) -> None:
        self._loop = new_loop()
        self._thread: Thread | None = None
        try:
            self._node = Node(**settings)
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> SyncNode:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        self._thread = Thread(target=self._loop.run_forever, name="epicast", daemon=True)
        self._thread.start()
        try:
            self._call(self._node.start())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        if self._thread is not None:
            try:
                self._call(self._node.stop())
            finally:
                self._end()

    def _end(self) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None
        self._loop.close()

    @property
    def id(self) -> str:
        return self._node.id

    @property
    def address(self) -> str:
        return self._node.address

    @property
    def neighbours(self) -> list[str]:
        return self._node.neighbours

    def ready(self, timeout: float | None = 30.0) -> None:
        self._call(self._node.ready(timeout))

    def publish(
        self, topic: str, payload: bytes, *, headers: Mapping[str, str] | None = None, wait: bool = True
    ) -> Receipt:
        return self._call(self._node.publish(topic, payload, headers=headers, wait=wait))

    def subscribe(self, pattern: str = "**", **settings: Any) -> SyncSubscription:
        return SyncSubscription(self, self._node.subscribe(pattern, **settings))

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
        if self._thread is None:
            work.close()
            raise EpicastError("the node is not running: use it within `with`, or call start first")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _soon(self, fn: Any) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(fn)
