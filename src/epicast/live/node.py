"""A live node: joins a cluster, publishes, subscribes.

async with epicast.Node(listen="127.0.0.1:0", seeds=["127.0.0.1:7946"]) as node:
    await node.ready()
    async with node.subscribe("prices/*") as messages:
        await node.publish("prices/eur", b"1.08")
        async for message in messages:
            ...
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any

from epicast.core.errors import EpicastError
from epicast.core.patterns import require_pattern, require_topic
from epicast.live import arguments, clock, envelope
from epicast.live.config import Limits, Policy, TraceLevel
from epicast.live.connection import Connection
from epicast.live.door import Door
from epicast.live.driver import Driver
from epicast.live.events import EVENTS_MAX, Events, Happenings
from epicast.live.hello import MAGIC, VERSION, Hello
from epicast.live.hub import Hub
from epicast.live.ids import Address, make_id, new_incarnation, parse_address
from epicast.live.joining import Discovery, Joining
from epicast.live.local_calls import LocalCalls
from epicast.live.logs import tried
from epicast.live.messages import Message, QueueFull, Receipt, Waiting
from epicast.live.orders import protocols, with_order
from epicast.live.readiness import Readiness
from epicast.live.seeds import Seeds
from epicast.live.sending import Tally
from epicast.live.subscription import Subscription
from epicast.live.switchboard import Switchboard
from epicast.live.tuning import tuned
from epicast.stacks.node import message_types
from epicast.stacks.stack import Stack
from epicast.wire.frames import Run

if TYPE_CHECKING:
    from epicast.live.recorder import Recorder
    from epicast.live.tls import Tls

Payload = bytes | bytearray | memoryview
TIDY_S = 0.5
ROOM_LOOK_S = 0.01
NO_ROOM = "the order of this topic cannot take more now: wait, or publish less"


class Node:
    """One process of a cluster. It runs from `start` to `stop`, or within `async with`."""

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
        """`listen`: port 0 lets the system choose. `advertise`: the address under which others reach us, if it is not
        the one that we listen at. `stack`: its name, or a table as in a stack's file. `sign`: publish signed messages
        and accept no others (needs `tls`). `insecure`: without TLS, listen beyond this machine all the same. `trace`: a
        folder for what happens. `area`: where the node is, from the largest region to the smallest, as in `eu/paris`;
        some stacks choose neighbours by it. `order`: "fifo", "causal" or "total" for all topics, or by pattern, as in
        `{"ledger/**": "total"}`; alike on all nodes. `order_settings`: of these orders, by name."""
        arguments.require(listen=listen, advertise=advertise, cluster=cluster, area=area, trace_level=trace_level)
        arguments.require_keys(tls, sign=sign, insecure=insecure)
        arguments.require_tables(order, order_settings)
        arguments.require_discovery(discovery)
        arguments.require_folder(trace)
        self._listen = parse_address(listen)
        self._advertise = parse_address(advertise) if advertise else None
        self._seeds = Seeds(seeds)
        chosen = arguments.stack_of(stack)
        self._stack = tuned(with_order(chosen, order, order_settings))
        self.cluster = cluster
        self._tls, self._sign = tls, sign
        arguments.require_protection(self._listen, tls, insecure=insecure)
        arguments.require_signable(chosen, sign=sign)
        self._discovery = tuple(discovery)
        self.limits = arguments.limits_of(limits)
        self._trace, self._trace_level, self._area = trace, trace_level, area
        self.address = ""  # where we listen
        self.id = ""
        self._started = self._running = False
        self._groups = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._tidying: asyncio.TimerHandle | None = None

    # Beginning and end

    async def __aenter__(self) -> Node:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        if self._started:
            raise EpicastError("the node was started before: stop it first, or make another one")
        self._started = True
        self._recorder: Recorder | None = None
        door = Door(self.limits, self.cluster, self._tls)
        try:
            await self._start(door)
        except BaseException:
            if self._running:
                await self.stop()
            else:
                self._abandon(door)
            raise

    def _abandon(self, door: Door) -> None:
        """The start failed half way."""
        self._started = False
        door.shut()
        for each in self._discovery:
            each.close()
        if self._recorder is not None:
            self._recorder.end({})

    async def _start(self, door: Door) -> None:
        loop = asyncio.get_running_loop()
        listening = await door.listen(loop, self._listen)
        address = self._advertise or Address(listening.host, listening.port)
        if self._advertise is not None and not self._advertise.port:
            address = Address(self._advertise.host, listening.port)
        chance = secrets.SystemRandom()
        self.address, self.id = str(address), make_id(address, new_incarnation(chance.randrange))
        if self._tls is not None:
            from epicast.live.tls import require_own

            require_own(self._tls, self.id, self.cluster)
        self.started_us = self.unix_us()
        rng = Random(chance.getrandbits(64))
        self._recorder = self._make_recorder()
        self._driver = Driver(loop, self._stack, self.id, rng, self, self._recorder, self._area)
        greeting = Hello(MAGIC, VERSION, self.cluster, protocols(self._stack), self.id, self._area, self._sign)
        self._hub = Hub(loop, self._driver, greeting, door, self.limits, rng)
        self._driver.attach(self._hub)
        self._orders, congestion = self._driver.orders, self._hub.congestion
        self._guard = self._make_guard()
        hold, let_go, has_order = congestion.hold, congestion.let_go, self._orders.has
        signer_of = (lambda event: None) if self._guard is None else self._guard.signer_of
        self._board = Switchboard(self.limits, self._hub.counters, self.unix_us, hold, let_go, has_order, signer_of)
        self._orders.tell_arrivals(self._board.arrived)
        self.takes_runs = self._guard is None  # signatures are looked at one by one
        self._readiness, self._happenings = Readiness(self), Happenings(self._driver, self.unix_us)
        self._stack_node = self._driver.node
        mine, members = [address, listening], self._stack_node.membership
        self._joining = Joining(self._hub, self._seeds, mine, rng, members, self._became_first)
        self._running = True  # from here on there is something to stop
        await self._begin(loop, door, address)

    async def _begin(self, loop: asyncio.AbstractEventLoop, door: Door, address: Address) -> None:
        for each in self._discovery:  # a stack may call out as soon as it starts
            if isinstance(each, LocalCalls):
                await each.start(self.id, self.cluster, message_types(self._stack), self._driver.heard_call)
                self._hub.local_calls = each
        self._stack_node.start((), alone=not (self._seeds or self._discovery))
        door.let_in(loop, self._accepted, self._hub.room)
        if self._recorder is not None:
            self._recorder.take_pictures(loop, self._stack_node)
        self._tidy()
        for each in self._discovery:
            if not isinstance(each, LocalCalls):
                await each.start(address, self.cluster, self._joining.found)
        if self._seeds or self._discovery:
            self._tasks.append(loop.create_task(self._joining.run()))

    def _tidy(self) -> None:
        self._board.reassembly.expire(self.unix_us())
        self._tidying = asyncio.get_running_loop().call_later(TIDY_S, self._tidy)

    async def stop(self) -> None:
        """Leave in good order: neighbours are told, and what was published goes out first."""
        if not self._running:
            return
        self._running = False
        await self._end()

    async def _end(self) -> None:
        """Of whatever has begun. A part that fails is logged, and the others end all the same."""
        if self._tidying is not None:
            self._tidying.cancel()
        for task in self._tasks:
            task.cancel()
        for each in self._discovery:
            tried(each.close)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        tried(self._stack_node.leave)
        self._driver.running = False
        self._board.close()
        self._happenings.close()
        try:
            await self._hub.shut()
        finally:
            if self._recorder is not None:
                self._recorder.end(dict(self._hub.counters))
            self._started = False

    def _accepted(self) -> Connection:
        return Connection(self._hub, dialled=False)

    def _make_recorder(self) -> Recorder | None:
        if self._trace is None:
            return None
        from epicast.live.recorder import Recorder

        folder, level, now_us = Path(self._trace), self._trace_level, self.unix_us
        return Recorder.create(folder, self.id, self._stack, level, now_us, area=self._area, cluster=self.cluster)

    def _make_guard(self) -> Any:
        if not self._sign:
            return None
        from epicast.live.guard import Guard

        assert self._tls is not None
        return Guard(self._tls, self.cluster)

    # For the application

    async def ready(self, timeout: float | None = 30.0) -> None:
        """Joined: what we publish from now on reaches others, and what they publish is delivered as it comes. A node
        without seeds is the first, and ready at once; one that is among its seeds, when no other process was heard for
        `first_us`. The error says what is in the way."""
        self._require_running()
        arguments.require(timeout=timeout)
        await self._readiness.wait(timeout)

    @property
    def neighbours(self) -> list[str]:
        """The processes that we exchange messages with, over connections that are up; where the membership holds none
        for its neighbours (Cyclon), they are made as needed."""
        if not self._running:
            return []
        links, members = self._hub.links, self._stack_node.membership
        peers = [str(peer) for peer in members.peers()]
        if not members.holds_links:
            return peers
        return [peer for peer in peers if (link := links.get(peer)) is not None and link.conn is not None]

    def subscribe(
        self,
        pattern: str = "**",
        *,
        policy: Policy = "drop-oldest",
        messages_max: int | None = None,
        bytes_max: int | None = None,
        order: str | None = None,
    ) -> Subscription:
        """Use it with `async with`: messages are queued from then on. `policy` says what happens when the application
        does not keep up: "block" stops reading from the network, "drop-oldest" and "drop-newest" lose messages and put
        a `Gap` in their place, "disconnect" ends the subscription with an error. `order`: nothing for that of each
        topic, "none" for messages as they come, or an order that all these topics must have."""
        self._require_running()
        pattern = require_pattern(pattern)
        arguments.require(messages_max=messages_max, bytes_max=bytes_max)
        arguments.require_policy(policy)
        if order is not None:
            self._orders.require(pattern, order)
        return self._board.subscribe(pattern, policy, messages_max, bytes_max, as_they_come=order == "none")

    def events(self, events_max: int = EVENTS_MAX) -> Events:
        """From now on: neighbours that come and go, dials that fail, joining, repairs of trees. `events_max`: so many
        may wait to be taken; the oldest make room."""
        self._require_running()
        arguments.require(events_max=events_max)
        return self._happenings.listen(events_max)

    def waiting(self, topic: str | None = None) -> list[Waiting]:
        """The messages that wait for their turn in the total order of their topic. An application that cannot wait may
        look at them, or `take` one whose probability is high enough for it."""
        self._require_running()
        if topic is not None:
            topic = require_topic(topic)
        opened = ((self._board.opened(event), odds) for event, odds in self._orders.waiting(topic))
        return [Waiting(message, odds) for message, odds in opened if message is not None]

    def take(self, message_id: tuple[str, int]) -> Message | None:
        """One of the messages that wait, before its turn: subscribers of this node will not get it then. None if it
        does not wait any more."""
        self._require_running()
        event = self._orders.take_early(*arguments.message_id_of(message_id))
        return None if event is None else self._board.opened(event)

    async def publish(
        self, topic: str, payload: Payload, *, headers: Mapping[str, str] | None = None, wait: bool = True
    ) -> Receipt:
        """`wait`: while a neighbour cannot take more; otherwise that raises `QueueFull`."""
        if wait is not True or not self._running:
            arguments.require(wait=wait)
            self._require_running()
        topic = require_topic(topic)
        if type(payload) is not bytes:
            payload = arguments.bytes_of(payload)
        if self._hub.congestion:
            if not wait:
                raise QueueFull("a neighbour cannot take more now: wait, or publish less")
            await self._hub.congestion.room()
        if len(payload) <= self.limits.fragment_bytes:
            if not self._stack_node.has_room(topic):
                await self._room(topic, wait=wait)
            return self._publish(topic, payload, headers)
        return await self._publish_in_pieces(topic, payload, headers, wait=wait)

    def publish_now(self, topic: str, payload: Payload, *, headers: Mapping[str, str] | None = None) -> Receipt:
        """Without waiting, from code that is not a coroutine. `QueueFull` if a neighbour cannot take more."""
        self._require_running()
        topic = require_topic(topic)
        if type(payload) is not bytes:
            payload = arguments.bytes_of(payload)
        if self._hub.congestion:
            raise QueueFull("a neighbour cannot take more now: wait, or publish less")
        if not self._stack_node.has_room(topic):
            raise QueueFull(NO_ROOM)
        if len(payload) > self.limits.fragment_bytes:
            raise EpicastError(f"publish_now takes up to {self.limits.fragment_bytes:,} bytes: use publish")
        return self._publish(topic, payload, headers)

    async def _room(self, topic: str, *, wait: bool) -> None:
        """Until the order of the topic can take one more."""
        while self._running and not self._stack_node.has_room(topic):
            if not wait:
                raise QueueFull(NO_ROOM)
            await asyncio.sleep(ROOM_LOOK_S)

    def _publish(self, topic: str, payload: bytes, headers: Mapping[str, str] | None) -> Receipt:
        if not self._running:  # it was stopped while we waited
            self._require_running()
        if headers is not None or self._guard is not None:
            packed = envelope.pack(self.unix_us(), payload, arguments.packed_headers(headers, self.limits))
            if self._guard is not None:
                return self._broadcast_signed(topic, packed)
        else:
            packed = envelope.pack_plain(self.unix_us(), payload)
        return self._broadcast(topic, self._stack_node.dress(topic, packed))

    async def _publish_in_pieces(
        self, topic: str, payload: bytes, headers: Mapping[str, str] | None, *, wait: bool
    ) -> Receipt:
        limits = self.limits
        if len(payload) > limits.message_bytes:
            raise EpicastError(
                f"a payload of {len(payload):,} bytes; the limit is {limits.message_bytes:,} (message_bytes)"
            )
        packed_headers = arguments.packed_headers(headers, self.limits)
        size = limits.fragment_bytes
        count = -(-len(payload) // size)
        self._groups += 1
        group, first = self._groups, None
        for index in range(count):
            if self._hub.congestion and wait:
                await self._hub.congestion.room()
            await self._room(topic, wait=wait)
            self._require_running()
            piece = payload[index * size : (index + 1) * size]
            fragment = envelope.Fragment(group, index, count)
            packed = envelope.pack(self.unix_us(), piece, packed_headers if index == 0 else b"", fragment)
            if self._guard is None:
                receipt = self._broadcast(topic, self._stack_node.dress(topic, packed))
            else:
                receipt = self._broadcast_signed(topic, packed)
            first = first or receipt
        assert first is not None
        return Receipt(first.id, first.neighbours, first.waiting, first.dropped, count)

    def _broadcast(self, topic: str, dressed: bytes) -> Receipt:
        hub = self._hub
        tally = hub.tally = Tally()
        try:
            source, seq = self._stack_node.broadcast(topic, dressed)
        finally:
            hub.tally = None
        return Receipt((str(source), seq), tally.sent, tally.waiting, tuple(tally.dropped))

    def _broadcast_signed(self, topic: str, packed: bytes) -> Receipt:
        source, seq = self._stack_node.next_id(topic)
        context = self._stack_node.next_context(topic)
        dressed = self._stack_node.dress(topic, packed)
        return self._broadcast(topic, self._guard.sign(topic, str(source), seq, dressed, context))

    def _require_running(self) -> None:
        if not self._running:
            raise EpicastError("the node is not running: use it within `async with`, or call start first")

    # What the stack tells

    def deliver(self, event: Any) -> None:
        if self._guard is None or self._guard.fresh(event, self.unix_us()):
            self._board.deliver(event)
        else:
            self._hub.counters["replays"] += 1

    def deliver_run(self, like: Any, run: Run) -> None:
        self._board.deliver_run(like, run)

    def correct(self, event: Any) -> None:
        if self._guard is None or self._guard.fresh(event, self.unix_us()):
            self._board.correct(event)

    def gave_up(self, source: str, lost: int, topic: str, why: str) -> None:
        self._board.gap(source, lost, why if topic or why != "lost" else "no neighbour has them any more", topic)

    def objection(self, event: Any) -> str:
        return "" if self._guard is None else self._guard.objection(event, self.unix_us())

    def links_changed(self) -> None:
        self._readiness.look()
        self._joining.look_again()

    def parted(self, peer: str) -> None:
        self._joining.parted(peer)

    def connected(self, peer: str) -> None:
        self._joining.connected(peer)

    def _became_first(self) -> None:
        self._readiness.look()
        self._happenings.first()

    # Time

    unix_us = staticmethod(clock.unix_us)
