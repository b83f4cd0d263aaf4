"""A node under attack and a friend of it: whatever is done to the node, both go on, and no lie gets to anybody."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from epicast.live.config import Limits
from epicast.live.messages import Gap, Message
from epicast.live.node import Node
from epicast.live.subscription import Subscription
from epicast.live.sync import new_loop
from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack
from tests.live.attacker import Attacker

DEADLINE_S = 20.0
STALL_S = 0.050
_TICK_S = 0.002

LIMITS = Limits(
    handshake_us=700_000,
    idle_us=1_500_000,
    handshakes=32,
    handshakes_per_address=16,
    connections=64,
    backoff_us=50_000,
    backoff_max_us=200_000,
)


def quick(name: str = "brisa") -> Stack:
    """The same protocols with a faster pulse: nobody wants to wait for tests."""
    membership = {"keep_alive": "200ms", "silence": "1500ms", "reply_timeout": "700ms", "shuffle_interval": "2s"}
    dissemination = {"watch": "200ms", "confirm": "400ms", "hard_wait": "500ms"} if name.startswith("brisa") else {}
    return stacks.load(name, {"membership": membership, "dissemination": dissemination})


def run(work: Coroutine[Any, Any, None], loop: Callable[[], Any] = new_loop) -> None:
    async def whole() -> None:
        try:
            async with asyncio.timeout(6 * DEADLINE_S):
                await work
        finally:
            Attacker.close_all()
            await asyncio.sleep(0.01)  # for the transports to end

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(whole())


async def until(condition: Callable[[], Any], what: str = "") -> None:
    """Wait for something that must come true."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, what or "it did not come true in time"
        await asyncio.sleep(0.005)


class StallMeter:
    """How long the loop was busy without a pause for others, in processor time: a loaded machine changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.worst_s = 0.0
        self._last_s = time.thread_time()
        self._tick()

    def _tick(self) -> None:
        now_s = time.thread_time()
        self.worst_s = max(self.worst_s, now_s - self._last_s)
        self._last_s = now_s
        self._timer = self._loop.call_later(_TICK_S, self._tick)

    def again(self) -> None:
        self.worst_s, self._last_s = 0.0, time.thread_time()

    def stop(self) -> None:
        self._timer.cancel()


class Siege:
    def __init__(self, node: Node, friend: Node) -> None:
        self.node, self.friend = node, friend
        self.heard: dict[Node, Subscription] = {}
        self.said: set[bytes] = set()  # by the two, and by nobody else
        self.got: dict[Node, list[bytes]] = {node: [], friend: []}
        self.errors: list[str] = []  # that nobody caught
        self.meter = StallMeter(asyncio.get_running_loop())

    @property
    def counters(self) -> dict[str, int]:
        return self.node._hub.counters

    def count(self, prefix: str) -> int:
        return sum(number for name, number in self.counters.items() if name.startswith(prefix))

    @property
    def refused(self) -> int:
        """Connections for which there was no room."""
        return self.node._hub.counters["connections refused"]

    async def goes_on(self, rounds: int = 3, topic: str = "honest") -> None:
        """Both publish, and both get it once."""
        new: set[bytes] = set()
        for who in (self.node, self.friend):
            for number in range(rounds):
                payload = f"{who.id} {topic} {len(self.said)} {number}".encode()
                await who.publish(topic, payload)
                new.add(payload)
        self.said |= new
        await until(lambda: self._take() and all(new <= set(got) for got in self.got.values()), "a message was lost")

    def _take(self) -> bool:
        for who, subscription in self.heard.items():
            while subscription._queue:
                item = subscription._queue.popleft()
                subscription._taken(item)
                if isinstance(item, Gap) and item.source not in (self.node.id, self.friend.id):
                    continue  # of those who publish what may not be let in
                assert isinstance(item, Message), item
                self.got[who].append(item.payload)
        return True

    def no_lies(self) -> None:
        """Nothing but what the two said got to an application, and nothing twice."""
        self._take()
        for got in self.got.values():
            assert set(got) <= self.said
            assert len(got) == len(set(got))

    def bounded(self) -> None:
        hub, limits = self.node._hub, self.node.limits
        assert hub.door.handshakes <= limits.handshakes
        assert len(hub.links) <= limits.connections

    async def alone_again(self) -> None:
        """Nothing is left of those who came and went."""
        hub = self.node._hub
        await until(lambda: hub.door.handshakes == 0 and set(hub.links) <= {self.friend.id}, "something is left")

    async def stands(self) -> None:
        await self.goes_on()
        self.no_lies()
        self.bounded()
        assert self.errors == []
        assert self.friend.id in self.node._hub.links


@asynccontextmanager
async def besieged(**settings: Any) -> AsyncIterator[Siege]:
    given: dict[str, Any] = {"stack": quick(), "limits": LIMITS, **settings}
    tls = given.pop("friend_tls", None)
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(Node(**given))
        theirs = given | ({"tls": tls} if tls is not None else {})
        friend = await stack.enter_async_context(Node(**theirs | {"seeds": [node.address]}))
        await friend.ready(DEADLINE_S)
        siege = Siege(node, friend)
        loop.set_exception_handler(lambda _, context: siege.errors.append(str(context)))
        for who in (node, friend):
            siege.heard[who] = await stack.enter_async_context(who.subscribe("**"))
        await siege.goes_on()
        gc.collect()
        gc.freeze()  # what the tests before left behind is not the node's burden
        siege.meter.again()
        try:
            yield siege
        finally:
            siege.meter.stop()
            gc.unfreeze()
