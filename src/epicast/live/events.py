"""What happens to a node, for applications: `async for event in node.events(): ...`

As long as nobody listens, nothing is wrapped and no event is made. With the first listener a `Tap` comes between the
membership and the layer above it, which hears the same calls; with the last one it goes.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from epicast.core.errors import EpicastError
from epicast.core.ids import NOBODY
from epicast.core.records import Kind
from epicast.live.status import printable

if TYPE_CHECKING:
    from types import TracebackType

    from epicast.live.driver import Driver

LISTENERS_MAX = 64
EVENTS_MAX = 1024

EventKind = Literal["neighbour-up", "neighbour-down", "joined", "alone", "dial-failed", "repaired"]


class NodeEvent(msgspec.Struct, frozen=True):
    """Something has happened to this node's place in the cluster."""

    kind: EventKind
    peer: str  # the process, or for a dial that failed perhaps only its address; empty where there is none
    reason: str
    time_us: int  # Unix time by the clock of this machine
    missed: int = 0  # events before this one that were dropped, because they were not taken in time


class Events:
    """The events of a node from now on. At most `events_max` wait to be taken; then the oldest is dropped, and the next
    event that is taken says how many are missing before it. Ends with the node, or with `close`; one that the
    application forgets is closed too."""

    def __init__(self, forget: Callable[[int], None], events_max: int) -> None:
        self.lost = 0  # dropped so far
        self._forget, self._events_max = forget, events_max
        self._queue: deque[NodeEvent] = deque()
        self._missed = 0  # dropped since the last event that was taken
        self._changed = asyncio.Event()
        self._open = True

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> NodeEvent:
        while not self._queue:
            if not self._open:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        event = self._queue.popleft()
        if self._missed:
            event, self._missed = msgspec.structs.replace(event, missed=self._missed), 0
        return event

    async def __aenter__(self) -> Events:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Iteration stops after what waits."""
        if self._open:
            self._open = False
            self._changed.set()
            self._forget(id(self))

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def offer(self, event: NodeEvent) -> None:
        if len(self._queue) >= self._events_max:
            self._queue.popleft()
            self._missed += 1
            self.lost += 1
        self._queue.append(event)
        self._changed.set()


class Tap:
    """Hears from the membership in place of the layer above it, and passes everything on."""

    def __init__(self, above: Any, happenings: Happenings) -> None:
        self.above, self._happenings = above, happenings
        self.positions, self.heard, self.uses = above.positions, above.heard, above.uses

    def neighbour_up(self, peer: Any) -> None:
        self._happenings.neighbour_up(str(peer))
        self.above.neighbour_up(peer)

    def neighbour_down(self, peer: Any, gone: bool) -> None:
        self._happenings.neighbour_down(str(peer), gone=gone)
        self.above.neighbour_down(peer, gone)


class Happenings:
    """Of one node: makes events for those that listen."""

    def __init__(self, driver: Driver, unix_us: Callable[[], int]) -> None:
        self._driver, self._unix_us = driver, unix_us
        self._listeners: dict[int, weakref.ref[Events]] = {}
        self._neighbours: dict[str, None] = {}  # while there are listeners
        self._tap: Tap | None = None
        self._down = ("", "")  # the link that has just ended, and why

    def listen(self, events_max: int) -> Events:
        if len(self._listeners) >= LISTENERS_MAX:
            raise EpicastError(f"more than {LISTENERS_MAX} listeners to events: close some")
        events, loop = Events(self._forget, events_max), self._driver.loop
        key = id(events)

        def forgotten(ref: Any) -> None:  # in whichever thread lets go of it
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._forget, key, ref)

        self._listeners[key] = weakref.ref(events, forgotten)
        if self._tap is None:
            self._begin()
        return events

    def _begin(self) -> None:
        membership = self._driver.node.membership
        self._neighbours = dict.fromkeys(str(peer) for peer in membership.peers())
        membership.listener = self._tap = Tap(membership.listener, self)
        self._driver.happenings = self

    def _forget(self, key: int, ref: weakref.ref[Events] | None = None) -> None:
        if ref is not None and self._listeners.get(key) is not ref:
            return  # it was closed before, and another one has its place
        self._listeners.pop(key, None)
        if not self._listeners and self._tap is not None:
            self._driver.node.membership.listener = self._tap.above
            self._driver.happenings = self._tap = None

    def close(self) -> None:
        """The node stops."""
        for each in [ref() for ref in self._listeners.values()]:
            if each is not None:
                each.close()

    def _tell(self, kind: EventKind, peer: str = "", reason: str = "") -> None:
        event = NodeEvent(kind, printable(peer), printable(reason), self._unix_us())
        for each in [ref() for ref in self._listeners.values()]:
            if each is not None:
                each.offer(event)

    # What happens

    def neighbour_up(self, peer: str) -> None:
        alone = not self._neighbours
        self._neighbours[peer] = None
        self._tell("neighbour-up", peer)
        if alone:
            self._tell("joined", peer, "the first neighbour")

    def neighbour_down(self, peer: str, *, gone: bool) -> None:
        self._neighbours.pop(peer, None)
        self._tell("neighbour-down", peer, self._why_down(peer, gone=gone))
        if not self._neighbours:
            self._tell("alone", "", "the last neighbour is gone")

    def _why_down(self, peer: str, *, gone: bool) -> str:
        """The membership does not say why; what is being handled does."""
        link, reason = self._down
        if link == peer and reason:
            return reason
        current = self._driver.hub.current
        if current is not None and current.peer == peer:
            return "it left" if gone else "it has enough other neighbours"
        return "it was silent for too long" if gone else "we have enough other neighbours"

    def link_down(self, peer: str, reason: str, tell: Callable[[], None]) -> None:
        self._down = peer, reason
        tell()
        self._down = "", ""

    def first(self) -> None:
        self._tell("joined", "", "the first: no other process is there")

    def dial_failed(self, target: str, reason: str) -> None:
        self._tell("dial-failed", target, reason)

    def recorded(self, kind: int, peer: Any, source: Any, detail: str) -> None:
        if kind == Kind.REPAIR:
            new = "" if peer == NOBODY else str(peer)
            self._tell("repaired", new, f"{detail} repair: it is our parent in the tree of {source}")
