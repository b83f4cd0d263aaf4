"""The queue of one subscriber: bounded, and never silent about what it lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING

from epicast.core.config import PositiveInt, checked
from epicast.core.errors import EpicastError
from epicast.live.config import Policy
from epicast.live.messages import Correction, Gap, Message, SlowSubscriber

if TYPE_CHECKING:
    from epicast.live.switchboard import Switchboard

Item = Message | Gap | Correction


class Subscription:
    """`async with node.subscribe("prices/*") as messages: async for message in messages: ...`

    Items are messages, and a `Gap` wherever messages were lost; a `Correction`, where topics are in total order and
    the stack hands over what comes late. `lost` counts what was lost.

    Reading it outside of `async with` raises. A loop alone could open it but not close it: after `break` its queue
    would go on filling, and with the policy "block" it would hold up the whole cluster.

    Several tasks may read one subscription: each item goes to one of them.
    """

    def __init__(
        self,
        board: Switchboard,
        pattern: str,
        policy: Policy,
        messages_max: int,
        bytes_max: int,
        *,
        as_they_come: bool = False,
    ) -> None:
        self.pattern, self.policy = pattern, policy
        self.as_they_come = as_they_come  # whatever order the topics have
        self.lost = 0
        self.delivered = 0  # taken by the application
        self._board = board
        self._messages_max, self._bytes_max = messages_max, bytes_max
        self._queue: deque[Item] = deque()
        self._bytes = 0
        self._waiters: list[asyncio.Future[None]] = []  # readers, while there is nothing to read
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = False
        self._opened = False  # at some time
        self._failure: Exception | None = None
        self._gap = 0  # lost since the last item that was queued: told before the next
        self._blocks = False

    # For the application

    async def __aenter__(self) -> Subscription:
        if self._opened:
            raise EpicastError(f"subscription {self.pattern!r} was opened before: subscribe again")
        self._board.add(self)
        self._open = self._opened = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._board.remove(self)
            self._wake()
            self._unblock()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Item:
        if not self._queue:
            await self._something()
        item = self._queue.popleft()
        self._taken(item)
        return item

    def batches(self, most: int = 1024) -> AsyncIterator[list[Item]]:
        """All that waits, at once: for applications that handle many messages a second."""
        checked("most", most, PositiveInt)
        return self._batches(most)

    async def _batches(self, most: int) -> AsyncIterator[list[Item]]:
        while True:
            try:
                if not self._queue:
                    await self._something()
            except StopAsyncIteration:
                return
            queue = self._queue
            if len(queue) <= most:
                items = list(queue)
                queue.clear()
                self._bytes = 0
                self.delivered += len(items)
            else:
                items = [queue.popleft() for _ in range(most)]
                self._bytes -= sum([item.size for item in items if type(item) is Message])
                self.delivered += most
            if self._blocks:
                self._unblock_if_drained()
            yield items

    @property
    def waiting(self) -> int:
        return len(self._queue)

    async def _something(self) -> None:
        while not self._queue:
            if self._gap:
                self._queue.append(Gap(self._gap, self.policy))
                self._gap = 0
            elif not self._opened:
                raise EpicastError("the subscription is not open: use `async with node.subscribe(...) as messages`")
            elif not self._open:
                raise self._failure or StopAsyncIteration
            else:
                if self._loop is None:
                    self._loop = asyncio.get_running_loop()  # a system call each time, in Python 3.11
                waiter = self._loop.create_future()
                self._waiters.append(waiter)
                try:
                    await waiter
                except BaseException:  # this reader does not wait any more
                    if waiter in self._waiters:
                        self._waiters.remove(waiter)
                    raise

    def _taken(self, item: Item) -> None:
        self.delivered += 1
        if type(item) is Message:
            self._bytes -= item.size
        if self._blocks:
            self._unblock_if_drained()

    # From the node

    def offer(self, item: Item) -> None:
        size = item.size if type(item) is Message else 0
        full = len(self._queue) >= self._messages_max or self._bytes + size > self._bytes_max
        if full and not self._make_room(size):
            return
        if self._gap:
            self._queue.append(Gap(self._gap, self.policy))
            self._gap = 0
        self._queue.append(item)
        self._bytes += size
        if self._waiters:
            self._wake()

    def offer_many(self, items: list[Message], size: int) -> None:
        if len(self._queue) + len(items) > self._messages_max or self._bytes + size > self._bytes_max or self._gap:
            for item in items:
                self.offer(item)
            return
        self._queue.extend(items)
        self._bytes += size
        if self._waiters:
            self._wake()

    def fail(self, error: EpicastError) -> None:
        """The application gets what is queued, then the error."""
        if self._open:
            self._failure = error
            self.close()

    def _make_room(self, size: int) -> bool:
        """The queue is full. May the item come in?"""
        if self.policy == "block":
            if not self._blocks:
                self._blocks = True
                self._board.block(self)
            return True  # what is on its way already must go somewhere: a turn of the loop's worth
        if self.policy == "drop-newest":
            self._lose(1)
            return False
        if self.policy == "disconnect":
            self._lose(1)
            self.fail(SlowSubscriber(f"subscription {self.pattern!r} fell behind by {len(self._queue)} messages"))
            return False
        while self._queue and (len(self._queue) >= self._messages_max or self._bytes + size > self._bytes_max):
            oldest = self._queue.popleft()
            if type(oldest) is Message:
                self._bytes -= oldest.size
                self._lose(1)
            elif isinstance(oldest, Gap):
                self._gap += oldest.lost
        if self._gap:  # it belongs to the front, where they were lost
            self._queue.appendleft(Gap(self._gap, self.policy))
            self._gap = 0
        return True

    def _lose(self, count: int) -> None:
        self.lost += count
        self._gap += count
        self._board.count_lost(count)

    def _unblock_if_drained(self) -> None:
        if len(self._queue) <= self._messages_max // 2 and self._bytes <= self._bytes_max // 2:
            self._unblock()

    def _unblock(self) -> None:
        if self._blocks:
            self._blocks = False
            self._board.unblock(self)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
