"""Runs a stack on a hub: what the simulator's engine is to simulated nodes, this is to a live one.

The protocols see nothing but the `Env` made here. Time is the monotonic clock; traces and messages carry Unix time,
which is that clock plus an offset taken once, so that it never jumps.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Protocol

from epicast.core.env import Timer
from epicast.core.errors import WireError
from epicast.core.ids import NOBODY
from epicast.core.message import Event, Message
from epicast.core.records import Kind
from epicast.live.blame import BLAMED, Blame
from epicast.live.effort import Part
from epicast.live.ids import address_of
from epicast.live.orders import Orders
from epicast.live.text_ids import TextIdDecoder
from epicast.live.told import names_in
from epicast.stacks.node import Node as StackNode
from epicast.stacks.node import handler_table, message_types
from epicast.stacks.stack import Stack
from epicast.wire.codec import HEADER_BYTES
from epicast.wire.frames import EVENT_HEAD_BYTES, Run
from epicast.wire.streams import Head, Shapes

if TYPE_CHECKING:
    from epicast.live.connection import Connection
    from epicast.live.events import Happenings
    from epicast.live.hub import Hub
    from epicast.live.recorder import Recorder

log = logging.getLogger("epicast")
_SEQ_MAX = (1 << 63) - 1
WARNED_MAX = 4096
CLOCK_EVERY = 16  # events


class Application(Protocol):
    """What the node does with what the stack gives it."""

    takes_runs: bool  # or must it see every event by itself?

    def deliver(self, event: Any) -> None: ...
    def correct(self, event: Any) -> None: ...
    def deliver_run(self, like: Any, run: Run) -> None: ...
    def gave_up(self, source: str, lost: int, topic: str, why: str) -> None: ...
    def objection(self, event: Any) -> str: ...
    def links_changed(self) -> None: ...
    def parted(self, peer: str) -> None: ...
    def connected(self, peer: str) -> None: ...


class LiveEnv:
    """A live node's window on the world."""

    __slots__ = ("driver", "me", "place", "rng")

    def __init__(self, driver: Driver, me: str, rng: Random, place: str = "") -> None:
        self.driver, self.me, self.rng, self.place = driver, me, rng, place

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def calendar_us(self) -> int:
        return time.time_ns() // 1000

    def send(self, to: Any, msg: Message) -> None:
        driver = self.driver
        size = driver.hub.send(to, msg)
        if driver.recorder is not None:
            driver.recorder.sent(to, msg, size)

    def send_many(self, to: Sequence[Any], msg: Message) -> None:
        if to:
            driver = self.driver
            size = driver.hub.send_same(to, msg)
            if driver.recorder is not None:
                for peer in to:
                    driver.recorder.sent(peer, msg, size)

    def shout(self, msg: Message) -> None:
        self.driver.hub.shout(msg)

    def after(self, delay_us: int, fn: Callable[..., None], *args: Any) -> Timer:
        return self.driver.loop.call_later(delay_us / 1e6, self.driver.fire, fn, args)

    def open(self, peer: Any) -> None:
        self.driver.hub.open(peer)

    def close(self, peer: Any) -> None:
        self.driver.hub.close(peer)

    def deliver(self, event: Event, sender: Any) -> None:
        driver = self.driver
        if driver.recorder is not None:
            driver.recorder.delivered(event, sender, sender == self.me)
        driver.app.deliver(event)

    def correct(self, event: Event) -> None:
        driver = self.driver
        if driver.recorder is not None:
            driver.recorder.record(Kind.CORRECTION, NOBODY, event.source, event.seq, event.hops, event.topic, detail="")
        driver.app.correct(event)

    def record(
        self,
        kind: int,
        peer: Any = NOBODY,
        source: Any = NOBODY,
        seq: int = -1,
        hops: int = 0,
        topic: str = "",
        detail: str = "",
    ) -> None:
        driver = self.driver
        driver.hub.counters[f"record {Kind(kind).name.lower()}"] += 1
        if driver.recorder is not None:
            driver.recorder.record(kind, peer, source, seq, hops, topic, detail)
        if driver.happenings is not None:
            driver.happenings.recorded(kind, peer, source, detail)
        if kind == Kind.GAP:
            count, _, why = detail.partition(" ")
            driver.app.gave_up(str(source), int(count) if count.isdigit() else 1, topic, why)


class Driver:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stack: Stack,
        me: str,
        rng: Random,
        app: Application,
        recorder: Recorder | None = None,
        place: str = "",
    ) -> None:
        self.loop, self.app, self.recorder = loop, app, recorder
        self.hub: Hub
        self.env = LiveEnv(self, me, rng, place)
        self.node = StackNode(self.env, stack)
        kinds = message_types(stack)
        self.decoder, self.shapes = TextIdDecoder([*kinds, Head]), Shapes(kinds)
        parts = self.node.parts()
        self._handlers: dict[type, tuple[Any, Callable[..., bool | None]]] = {
            kind: (parts[slot], handle) for kind, (slot, handle) in handler_table(stack).items()
        }
        self._on_rejected: Callable[..., None] | None = getattr(self.node.dissemination, "on_rejected", None)
        self.blame = Blame()
        self._warned: dict[str, None] = {}  # neighbours that sign and we do not, or the other way round
        self._about_members = {kind for kind, (part, _) in self._handlers.items() if part is self.node.membership}
        self._names = {kind: names for kind in kinds if (names := names_in(kind)) is not None}
        self._take_run: Callable[..., Any] | None = getattr(self.node.dissemination, "take_run", None)
        self.orders = Orders(self.node.order)
        self.happenings: Happenings | None = None  # while an application listens
        self.running = True

    def attach(self, hub: Hub) -> None:
        self.hub = hub
        hub.decoder, hub.shapes = self.decoder, self.shapes

    # For the hub

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def link_up(self, peer: str) -> None:
        if self.running:
            self.env.record(Kind.LINK_UP, peer)
            self._tell(self.node.on_link_up, peer)

    def link_down(self, peer: str, reason: str) -> None:
        if not self.running:
            return
        self.env.record(Kind.LINK_DOWN, peer)
        if self.happenings is None:
            self._tell(self.node.on_link_down, peer)
        else:
            self.happenings.link_down(peer, reason, partial(self._tell, self.node.on_link_down, peer))
        self.app.parted(peer)

    def parted(self, peer: str) -> None:
        """We have let go of a link."""
        if self.running:
            self.app.parted(peer)

    def dial_failed(self, target: str, reason: str) -> None:
        if self.happenings is not None:
            self.happenings.dial_failed(target, reason)

    def _tell(self, handle: Callable[[str], None], peer: str) -> None:
        """A protocol that fails here leaves all other links as they are."""
        try:
            handle(peer)
        except Exception:
            log.exception("%s could not be handled: %s", handle.__name__, peer)
        self.app.links_changed()

    def message(self, conn: Connection, body: bytes) -> bool:
        """Was it upkeep? Then the time that it took is counted."""
        msg = self.decoder.decode(body)
        kind = type(msg)
        if kind is Head:
            self._note(conn.peer, conn.known.learn(msg))
            return True
        if kind in self._about_members and not conn.allowance.take(self.now_us()):
            self.hub.counters["membership messages refused"] += 1
            return True
        self._note(conn.peer, msg)
        if self.shapes.get(kind) is None:
            self._handle(conn, msg, HEADER_BYTES + len(body))
        else:  # whole, without a stream: nobody sends it so, but it is as good or bad as any
            _require_number(msg.seq, 1)  # type: ignore[attr-defined]
            self._event(conn, msg, HEADER_BYTES + len(body))
        return not kind.with_events

    def _note(self, peer: str, msg: Message) -> None:
        """Of which processes it tells."""
        names = self._names.get(type(msg))
        if names is not None:
            self.hub.told.name(peer, names(msg), self.now_us())

    def run(self, conn: Connection, run: Run | Part, over_ns: int) -> tuple[Part | None, bool]:
        """Until `over_ns` at most. Returns what is left then, and whether all this was upkeep."""
        if type(run) is Part:
            return self._take_events(conn, run.events, over_ns)
        assert not isinstance(run, Part)
        like, upkeep = conn.known.find(run.stream), False
        if run.stream in conn.known.untried:
            del conn.known.untried[run.stream]
            upkeep = True
        _require_number(run.seq, len(run))
        app = self.app
        quick = self._take_run is not None and self.recorder is None and app.takes_runs and self.running
        if quick and not self.orders.has(like.topic):
            assert self._take_run is not None
            taken = self._take_run(conn.peer, like, run)
            if taken is not None:
                targets, onward = taken
                if targets:
                    self.hub.send_run(targets, onward, run)
                    self.hub.handed_on()
                app.deliver_run(like, run)
                return None, upkeep
        shape = self.shapes.get(type(like))
        assert shape is not None
        part, idle = self._take_events(conn, shape.events(like, run.seq, run), over_ns)
        return part, idle or upkeep

    def _take_events(self, conn: Connection, events: Iterator[Any], over_ns: int) -> tuple[Part | None, bool]:
        counters = self.hub.counters
        before, taken, empty, part = counters["delivered"], 0, 0, None
        for msg in events:
            if not msg.payload:
                empty += 1
            self._event(conn, msg, EVENT_HEAD_BYTES + len(msg.payload))
            if conn.closing:
                break
            taken += 1
            if taken % CLOCK_EVERY == 0 and monotonic_ns() > over_ns:
                part = Part(events)
                break
        delivered = counters["delivered"]
        idle = taken - (delivered - before)
        return part, empty > 0 or (idle > 0 and conn.effort.brought_idle(idle, delivered))

    def _event(self, conn: Connection, msg: Any, size: int) -> None:
        objection = self.app.objection(msg)
        if not objection:
            self._handle(conn, msg, size)
        elif self.running:
            self._reject(conn, msg, objection)

    def _reject(self, conn: Connection, msg: Any, objection: str) -> None:
        peer, blamed = conn.peer, objection in BLAMED
        self.env.record(Kind.NONSENSE, peer, msg.source, msg.seq, detail=objection)
        self.hub.counters["bad signatures"] += 1
        if self._on_rejected is not None:
            self._on_rejected(peer, msg, blamed=blamed)
        if not blamed:
            return
        if not self.blame.knows(peer):
            does = "publishes" if peer == msg.source else "passes on"
            log.warning("%s %s messages that may not be let in: %s", peer, does, objection)
        if self.blame.brought(peer, self.now_us()):
            log.warning("%s brings too many messages that may not be let in: it is cut off for a while", peer)
            conn.cut("bad signatures: too many")

    def objection(self, peer: str) -> str:
        """Why we have nothing to do with a process now; empty if we have."""
        return "bad signatures: left alone for a while" if self.blame.left_alone(peer, self.now_us()) else ""

    def met(self, peer: str, *, signs: bool, dialled: bool) -> None:
        """Of two neighbours only one of which signs, neither gets all that is published."""
        if not dialled and self.running:
            self.loop.call_soon(self.app.connected, peer)  # once messages can go there
        if signs == self.hub.greeting.signs or peer in self._warned:
            return
        if len(self._warned) >= WARNED_MAX:
            self._warned.clear()
        self._warned[peer] = None
        if signs:
            log.warning("%s accepts signed messages only: what this node publishes is not let in there (sign)", peer)
        else:
            log.warning("%s does not sign: what it publishes is not let in here (sign)", peer)

    def _handle(self, conn: Connection, msg: Message, size: int) -> None:
        part, handle = self._handlers[type(msg)]
        if not self.running:
            return
        recorder = self.recorder
        row = recorder.received(conn.peer, msg, size) if recorder is not None else None
        try:
            duplicate = handle(part, conn.peer, msg)
        except Exception:
            log.exception("%s from %s could not be handled; the connection is cut", type(msg).__name__, conn.peer)
            self.hub.nonsense(conn, f"{type(msg).__name__} could not be handled")
            return
        if duplicate:
            self.hub.counters["duplicates"] += 1
            if recorder is not None and row is not None:
                recorder.was_duplicate(row)

    def heard_call(self, sender: str, msg: Message) -> None:
        """From the local network, without a connection."""
        part, handle = self._handlers[type(msg)]
        if self.running:
            address = address_of(sender)
            self.hub.told.name(f"calls from {address.host if address else sender}", (sender,), self.now_us())
            self._note(sender, msg)
            handle(part, sender, msg)

    def dropped(self, peer: str, msg: Message, reason: str) -> None:
        if self.recorder is not None:
            self.recorder.dropped(peer, msg, reason)

    def alive(self, peer: str) -> None:
        if self.running:
            self.node.membership.sign_of_life(peer)

    # For the Env

    def fire(self, fn: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self.running:
            fn(*args)


def _require_number(first: int, count: int) -> None:
    """There must be a next one, or those to whom it is passed on could not read it, and would cut us off."""
    if first + count > _SEQ_MAX:
        raise WireError("a number that is too large")
