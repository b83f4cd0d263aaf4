"""The event loop of the simulator, in plain Python. `_engine.pyx` is the same loop compiled, byte for byte the same
run.

Two queues. Messages travel in *flat buckets*: one list per tick of arrival, four entries a message (to, from, message,
description), no object per event and no heap entry but one per tick. Timers keep microseconds: one list per due time.
At one instant the timers run first, in the order in which they were set, then the arrivals, in the order in which they
were sent. Nothing else decides the order, so a run is a function of the scenario and the seed.

The fast path knows only independent delays and, for links, first in first out. Whatever else the network does (loss,
faults, bandwidth, connections being set up) is `Network.route`, shared by both engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import chain
from random import Random
from typing import Any

import numpy as np

from epicast.core.ids import NOBODY
from epicast.core.message import Message
from epicast.core.records import FIRST_KEPT, KIND_CODES, Kind, Level
from epicast.sim.capture import Describer, batch_from_rows
from epicast.trace.batch import Batch
from epicast.wire.codec import size

DOWN, UP, PAUSED = 0, 1, 2
NEVER_US = 1 << 62
FLUSH_ROWS = 1 << 14  # small enough that the columns of a batch stay in the caches
DRAWS = 1024

_SEND, _RECEIVE, _DUPLICATE = int(Kind.SEND), int(Kind.RECEIVE), int(Kind.DUPLICATE)
_DROP, _COPY = int(Kind.DROP), int(Kind.COPY)
_PUBLISH, _DELIVER, _CORRECTION = int(Kind.PUBLISH), int(Kind.DELIVER), int(Kind.CORRECTION)

Route = Callable[[int, int, Message, int, int], None]
Handler = Callable[[Any, int, Any], bool | None]


class Timer:
    __slots__ = ("args", "fn", "node")

    def __init__(self, node: int, fn: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.node, self.fn, self.args = node, fn, args

    def cancel(self) -> None:
        # The entry stays in its list until it is due: cancelling is one assignment.
        self.fn = None  # type: ignore[assignment]


class Engine:
    """Time, both queues, and the table of who handles what."""

    compiled = False

    def __init__(self, tick_us: int, rng: Random, level: Level = Level.OFF) -> None:
        self.tick_us = tick_us
        self.rng = rng  # shared by all protocols: the order of events is fixed, so their draws are too
        self.now = 0
        self.events = 0
        self._table: dict[type[Message], tuple[list[Any], Handler]] = {}  # handlers with the parts they are called on
        self.parts: list[list[Any]] = []  # by slot, then by node id; None: cannot receive
        self.state = bytearray()
        self.sent: dict[type[Message], list[int]] = {}  # messages and bytes, by type
        self.counts = [0] * KIND_CODES
        # The network, as the fast path sees it
        self.plain = True  # False: every message goes through `route`
        self.over_links = True  # False: datagrams, each on its own
        self.route: Route = _no_route
        self.undeliverable: Route = _no_route
        self.on_link: Callable[[int, int], None] = _no_link
        self.place_of: Callable[[int], str] = _nowhere
        self.in_earshot: Callable[[int], Sequence[int]] = _nobody_near  # who is on a process's local network
        self.on_unlink: Callable[[int, int], None] = _no_link
        self.skews_us: dict[int, int] = {}  # by how much the calendar clocks of some processes are ahead
        self.overslept: Callable[[Timer], None] = _no_timer
        self.draw: Callable[[], int] = _no_draw
        # The queues
        self._buckets: dict[int, list[Any]] = {}
        self._ticks: list[int] = []  # heap
        self._timers: dict[int, list[Timer]] = {}
        self._dues: list[int] = []  # heap
        self._last_arrival: dict[int, int] = {}  # (from << 32 | to) of each usable link -> tick of the last arrival
        # The trace
        self.level = level
        self.full = level == Level.FULL
        self.first_kept = FIRST_KEPT[level]
        self.describer = Describer()
        self.sink: Callable[[Batch], None] = _no_sink
        self._rows: list[int] = []  # five to a row: time, kind, node, peer, info
        self._infos: list[tuple[int, ...]] = []
        self._info_base = 0

    # Set-up

    def use_handlers(self, table: dict[type[Message], tuple[int, Handler]]) -> None:
        """Which slot of a node's parts handles a message, and with which function."""
        slots = 1 + max(slot for slot, _ in table.values())
        self.parts = [[None] * len(self.state) for _ in range(slots)]
        self._table = {message: (self.parts[slot], handle) for message, (slot, handle) in table.items()}

    def add_node(self) -> int:
        for slot in self.parts:
            slot.append(None)
        self.state.append(DOWN)
        return len(self.state) - 1

    def env(self, me: int) -> SimEnv:
        return SimEnv(self, me)

    def use_delays(self, chunk: Callable[[int], list[int]]) -> None:
        """Delays in us come in chunks, so that both engines draw the same ones in the same order. Rounded to ticks."""
        tick_us, half = self.tick_us, self.tick_us // 2
        self.draw = chain.from_iterable(iter(lambda: [(us + half) // tick_us or 1 for us in chunk(DRAWS)], [])).__next__

    def set_state(self, node: int, state: int, parts: Sequence[Any] = ()) -> None:
        """Up, with its parts; or paused or down, when nothing may reach them."""
        self.state[node] = state
        for at, slot in enumerate(self.parts):
            slot[node] = parts[at] if state == UP else None

    # Links, as the fast path sees them

    def link_ready(self, src: int, dst: int, tick: int) -> None:
        """Messages between the two arrive no earlier than this tick and in order."""
        self._last_arrival[src << 32 | dst] = tick

    def link_gone(self, src: int, dst: int) -> None:
        self._last_arrival.pop(src << 32 | dst, None)

    def link_tick(self, src: int, dst: int) -> int:
        """The tick of the last arrival over the link, or -1 if there is no usable link."""
        return self._last_arrival.get(src << 32 | dst, -1)

    # Sending

    def transmit(self, src: int, to: Sequence[int], msg: Message) -> None:
        count = len(to)
        bytes_each = size(msg)
        tally = self.sent.get(msg.__class__)
        if tally is None:
            tally = self.sent[msg.__class__] = [0, 0]
        tally[0] += count
        tally[1] += count * bytes_each
        info = 0
        if self.full:
            info = self.describe(msg, bytes_each)
            now, rows = self.now, self._rows
            for dst in to:
                rows += (now, _SEND, src, dst, info)
        if not self.plain:
            for dst in to:
                self.route(src, dst, msg, bytes_each, info)
            return
        if self.over_links:
            self._launch_over_links(src, to, msg, bytes_each, info)
            return
        first, draw = -(-self.now // self.tick_us), self.draw
        bucket_at = self._buckets.get
        for dst in to:
            tick = first + draw()
            bucket = bucket_at(tick)
            if bucket is None:
                bucket = self._open_bucket(tick)
            bucket += (dst, src, msg, info)

    def _launch_over_links(self, src: int, to: Sequence[int], msg: Message, bytes_each: int, info: int) -> None:
        """First in, first out on each link; whoever has none takes the slow path."""
        first, last_arrival = -(-self.now // self.tick_us), self._last_arrival
        for dst in to:
            link = src << 32 | dst
            last = last_arrival.get(link)
            if last is None:
                self.route(src, dst, msg, bytes_each, info)
                continue
            tick = first + self.draw()
            if tick < last:
                tick = last
            last_arrival[link] = tick
            self.post(src, dst, msg, info, tick)

    def _open_bucket(self, tick: int) -> list[Any]:
        bucket: list[Any] = []
        self._buckets[tick] = bucket
        heappush(self._ticks, tick)
        return bucket

    def post(self, src: int, dst: int, msg: Message, info: int, tick: int) -> None:
        """A message that the network has already routed arrives at this tick."""
        assert tick * self.tick_us >= self.now, "a message cannot arrive in the past"
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._open_bucket(tick)
        bucket += (dst, src, msg, info)

    def unpost(self, wanted: Callable[[int, int], bool]) -> list[tuple[int, int, Message, int]]:
        """Take back what is in flight between certain processes: (src, dst, message, info)."""
        taken: list[tuple[int, int, Message, int]] = []
        for tick in sorted(self._buckets):
            it = iter(self._buckets[tick])
            kept: list[Any] = []
            for dst, src, msg, info in zip(it, it, it, it, strict=True):
                if wanted(src, dst):
                    taken.append((src, dst, msg, info))
                else:
                    kept += (dst, src, msg, info)
            self._buckets[tick] = kept
        return taken

    def in_flight(self) -> int:
        return sum(len(bucket) for bucket in self._buckets.values()) // 4

    # Timers

    def after(self, node: int, delay_us: int, fn: Callable[..., None], args: tuple[Any, ...]) -> Timer:
        timer = Timer(node, fn, args)
        self.arm(timer, delay_us)
        return timer

    def arm(self, timer: Timer, delay_us: int) -> None:
        due = self.now + delay_us if delay_us > 0 else self.now
        timers = self._timers.get(due)
        if timers is None:
            self._timers[due] = [timer]
            heappush(self._dues, due)
        else:
            timers.append(timer)

    def call_at(self, at_us: int, fn: Callable[..., None], *args: Any) -> Timer:
        """For the world itself: fires whatever the state of any node."""
        return self.after(NOBODY, at_us - self.now, fn, args)

    # Running

    def run(self, until_us: int, budget: int = NEVER_US) -> bool:
        """Everything due up to `until_us`, or about `budget` events. True when the time was reached."""
        ticks, dues, buckets, timers = self._ticks, self._dues, self._buckets, self._timers
        enough = self.events + budget
        until_us = min(until_us, NEVER_US - 1)
        while self.events < enough:
            due = dues[0] if dues else NEVER_US
            arrival = ticks[0] * self.tick_us if ticks else NEVER_US
            if min(due, arrival) > until_us:
                self.now = max(self.now, until_us)
                return True
            if due <= arrival:
                self.now = due
                heappop(dues)
                self._fire(timers.pop(due))
            else:
                self.now = arrival
                self._deliver(buckets.pop(heappop(ticks)))
            if len(self._rows) >= 5 * FLUSH_ROWS:
                self.flush()
        return False

    def _fire(self, timers: list[Timer]) -> None:
        state = self.state
        for timer in timers:
            fn, node = timer.fn, timer.node
            if fn is None:
                continue
            if node == NOBODY or state[node] == UP:
                self.events += 1
                fn(*timer.args)
            elif state[node] == PAUSED:
                self.overslept(timer)

    def _deliver(self, bucket: list[Any]) -> None:
        self.events += len(bucket) // 4
        if self.full:
            self._deliver_traced(bucket)
            return
        table = self._table
        duplicates = 0
        it = iter(bucket)
        for dst, src, msg, info in zip(it, it, it, it, strict=False):
            nodes, handle = table[msg.__class__]
            node = nodes[dst]
            if node is None:
                self.undeliverable(src, dst, msg, 0, info)
            elif handle(node, src, msg):
                duplicates += 1
        self.counts[_DUPLICATE] += duplicates

    def _deliver_traced(self, bucket: list[Any]) -> None:
        it = iter(bucket)
        for dst, src, msg, info in zip(it, it, it, it, strict=False):
            nodes, handle = self._table[msg.__class__]
            node = nodes[dst]
            if node is None:
                self.undeliverable(src, dst, msg, 0, info)
            else:
                self._receive(node, handle, src, dst, msg, info)

    def _receive(self, node: Any, handle: Handler, src: int, dst: int, msg: Message, info: int) -> None:
        receipt = len(self._rows)
        self._rows += (self.now, _RECEIVE, dst, src, info)
        if handle(node, src, msg):
            self.counts[_DUPLICATE] += 1
            self._rows[receipt + 1] = _DUPLICATE

    def hand_over(self, src: int, dst: int, msg: Message) -> None:
        """A reception outside the queue: a process that slept takes what waited for it."""
        nodes, handle = self._table[msg.__class__]
        self.events += 1
        if self.full:
            self._receive(nodes[dst], handle, src, dst, msg, self.describe(msg, size(msg)))
        elif handle(nodes[dst], src, msg):
            self.counts[_DUPLICATE] += 1

    # The trace

    def describe(self, msg: Message, bytes_each: int) -> int:
        self._infos.append(self.describer.message(msg, bytes_each))
        return self._info_base + len(self._infos) - 1

    def drop(self, src: int, dst: int, msg: Message, info: int, reason: str) -> None:
        self.counts[_DROP] += 1
        self.describer.drops[reason] = self.describer.drops.get(reason, 0) + 1
        if self.full:
            old = self._infos[info - self._info_base]
            self._infos.append(self.describer.dropped(old, reason))
            self._rows += (self.now, _DROP, src, dst, self._info_base + len(self._infos) - 1)

    def copied(self, src: int, dst: int, info: int) -> None:
        """The network duplicates a datagram."""
        self.counts[_COPY] += 1
        if self.full:
            self._rows += (self.now, _COPY, src, dst, info)

    def record(
        self, node: int, kind: int, peer: int, source: int, seq: int, hops: int, topic: str, detail: str
    ) -> None:
        self.counts[kind] += 1
        if kind < self.first_kept:
            return
        self._infos.append(self.describer.event(source, seq, hops, topic, detail))
        self._rows += (self.now, kind, node, peer, self._info_base + len(self._infos) - 1)

    def flush(self) -> None:
        """Hand the rows so far to the sink."""
        if self._rows:
            rows = np.array(self._rows, dtype=np.int64).reshape(-1, 5)
            self.sink(batch_from_rows(rows, np.array(self._infos, dtype=np.int64), self._info_base))
            self._rows.clear()
        self._forget_infos()

    def _forget_infos(self) -> None:
        """Keep only descriptions that something in flight may still refer to. They are numbered in the order of
        sending, so the first entry of each bucket has the lowest number in it."""
        newest = self._info_base + len(self._infos)
        oldest = (
            min((bucket[3] for bucket in self._buckets.values() if bucket), default=newest) if self.full else newest
        )
        del self._infos[: oldest - self._info_base]
        self._info_base = oldest


class SimEnv:
    """A simulated node's Env."""

    __slots__ = ("engine", "me", "place", "rng")

    def __init__(self, engine: Engine, me: int) -> None:
        self.engine, self.me, self.rng = engine, me, engine.rng
        self.place = engine.place_of(me)

    def now_us(self) -> int:
        return self.engine.now

    def calendar_us(self) -> int:
        return max(0, self.engine.now + self.engine.skews_us.get(self.me, 0))

    def send(self, to: int, msg: Message) -> None:
        self.engine.transmit(self.me, (to,), msg)

    def send_many(self, to: Sequence[int], msg: Message) -> None:
        self.engine.transmit(self.me, to, msg)

    def shout(self, msg: Message) -> None:
        self.engine.transmit(self.me, self.engine.in_earshot(self.me), msg)

    def after(self, delay_us: int, fn: Callable[..., None], *args: Any) -> Timer:
        return self.engine.after(self.me, delay_us, fn, args)

    def open(self, peer: int) -> None:
        self.engine.on_link(self.me, peer)

    def close(self, peer: int) -> None:
        self.engine.on_unlink(self.me, peer)

    def deliver(self, event: Any, sender: int) -> None:
        engine, me = self.engine, self.me
        if engine.level == Level.OFF:
            engine.counts[_DELIVER] += 1
            engine.counts[_PUBLISH] += sender == me
            return
        if sender == me:
            engine.record(me, _PUBLISH, sender, event.source, event.seq, 0, event.topic, "")
        engine.record(me, _DELIVER, sender, event.source, event.seq, event.hops, event.topic, "")

    def correct(self, event: Any) -> None:
        self.engine.record(self.me, _CORRECTION, NOBODY, event.source, event.seq, event.hops, event.topic, "")

    def record(
        self,
        kind: int,
        peer: int = NOBODY,
        source: int = NOBODY,
        seq: int = -1,
        hops: int = 0,
        topic: str = "",
        detail: str = "",
    ) -> None:
        self.engine.record(self.me, kind, peer, source, seq, hops, topic, detail)


def _no_route(src: int, dst: int, msg: Message, bytes_each: int, info: int) -> None:
    raise AssertionError("the engine has no network")


def _no_link(me: int, peer: int) -> None:
    raise AssertionError("the engine has no links")


def _nowhere(me: int) -> str:
    return ""


def _nobody_near(me: int) -> Sequence[int]:
    return ()


def _no_timer(timer: Timer) -> None:
    raise AssertionError("the engine cannot pause")


def _no_draw() -> int:
    raise AssertionError("the engine has no latency model")


def _no_sink(batch: Batch) -> None:
    """Rows that nobody wants."""
