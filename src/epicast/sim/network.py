"""What happens to a message between two processes, when it is more than an independent delay.

In order: the fault rules give their verdict; the link, if there is one, must be usable; loss; the sender's queue
(processing, transmission at its bandwidth); propagation; then first in first out on a link, or reordering and
duplication of datagrams. On TCP-like transport a lost segment is not a lost message but a late one (retransmissions
with doubling time-outs), and one that never gets through breaks the link.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Annotated, Any, Literal

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration, Probability
from epicast.core.message import Message
from epicast.sim.engine import DOWN, PAUSED, UP, Engine, Timer
from epicast.sim.faults import DROP, Rule, Rules
from epicast.sim.latency import Latency
from epicast.sim.links import Links, LinkState
from epicast.wire.codec import size


class NetworkConfig(Config, frozen=True):
    transport: Literal["tcp", "datagram"] = "tcp"
    tick_us: PositiveDuration = 100  # delays are rounded to it, so that messages share buckets
    loss: Probability = 0.0  # of a datagram, or of one transmission of a segment
    duplication: Probability = 0.0  # datagrams only
    reordering: Probability = 0.0  # datagrams only: held back by up to reorder_us
    reorder_us: Duration = 50_000
    bandwidth_bps: Annotated[int, msgspec.Meta(ge=0)] = 0  # of each node's uplink; 0: unlimited
    processing_us: Duration = 0  # per message sent
    queue_bytes_max: Annotated[int, msgspec.Meta(ge=0)] = 0  # of the sender's queue; 0: unlimited
    connect_us: Duration = 0  # added to the handshake of a connection, besides its round trip
    detection_us: PositiveDuration = 1_000_000  # until a broken link is noticed
    retransmit_us: PositiveDuration = 200_000  # first time-out; doubles
    retransmit_max: Annotated[int, msgspec.Meta(ge=0, le=16)] = 6


class Network:
    def __init__(self, engine: Engine, config: NetworkConfig, latency: Latency, rng: Random) -> None:
        self.engine, self.config, self.latency, self.rng = engine, config, latency, rng
        self.rules = Rules()
        self.links = Links(self)
        self.tcp = config.transport == "tcp"
        self.link_notice: Callable[[int, int, bool], None] = lambda me, peer, up: None
        self._busy_until: dict[int, int] = {}  # when each sender's uplink is free again
        self._asleep: dict[int, list[tuple[Callable[..., None], Any]]] = {}  # what waits for a paused process to wake
        engine.route = self.route
        engine.undeliverable = self.undeliverable
        engine.overslept = self._overslept
        engine.on_link = self.links.open
        engine.on_unlink = self.links.close
        engine.over_links = self.tcp
        if not latency.pairwise:
            engine.use_delays(self._chunk)
        self._set_plain()

    # Faults

    def add_rule(self, rule: Rule) -> None:
        self.rules.add(rule)
        self._set_plain()

    def remove_rule(self, rule: Rule) -> None:
        self.rules.remove(rule)
        self._set_plain()

    def set_loss(self, loss: float) -> None:
        self.config = msgspec.structs.replace(self.config, loss=loss)
        self._set_plain()

    def heal(self) -> None:
        """No rules, no loss."""
        self.rules.clear()
        self.set_loss(0.0)

    def _set_plain(self) -> None:
        c = self.config
        trouble = c.loss or c.duplication or c.reordering or c.bandwidth_bps or c.processing_us
        self.engine.plain = not (self.rules or trouble or self.latency.pairwise)

    def passes(self, src: int, dst: int) -> bool:
        return self.rules.verdict(src, dst)[0] != DROP

    # Messages

    def route(self, src: int, dst: int, msg: Message, bytes_each: int, info: int) -> None:
        """The slow path: everything that the engine's fast path leaves out."""
        engine = self.engine
        verdict, reason = self.rules.verdict(src, dst)
        link = self.links.get(src, dst) if self.tcp else None
        if link is not None and link.state is LinkState.BROKEN:
            self.links.broke(link)
            engine.drop(src, dst, msg, info, "half_open" if self.exists(dst) else "down")
            return
        extra_us, lost = self._lost_or_late()
        if verdict == DROP or lost:
            if link is not None:
                self.links.broke(link)
            engine.drop(src, dst, msg, info, reason if verdict == DROP else "loss")
            return
        queue_us = self._queue_us(src, bytes_each)
        if queue_us < 0:
            engine.drop(src, dst, msg, info, "queue_full")
            return
        if self.tcp and link is None:
            # No link is held: a connection of its own, one round trip before the message.
            extra_us += self.config.connect_us + self.delay_us(src, dst) + self.delay_us(dst, src)
        delay_us = verdict + extra_us + queue_us
        tick = self._arrival_tick(src, dst, delay_us)
        if link is not None:
            tick = max(tick, engine.link_tick(src, dst))
            engine.link_ready(src, dst, tick)
        elif not self.tcp:
            tick = self._disorder(src, dst, msg, info, tick)
        engine.post(src, dst, msg, info, tick)

    def _lost_or_late(self) -> tuple[int, bool]:
        """Extra delay by retransmissions, and whether the message is lost for good."""
        loss = self.config.loss
        if not loss or self.rng.random() >= loss:
            return 0, False
        if not self.tcp:
            return 0, True
        late_us, timeout_us = 0, self.config.retransmit_us
        for _ in range(self.config.retransmit_max):
            late_us += timeout_us
            timeout_us *= 2
            if self.rng.random() >= loss:
                return late_us, False
        return late_us, True

    def _queue_us(self, src: int, bytes_each: int) -> int:
        """Waiting, processing and transmission at the sender; -1 if its queue is full."""
        c = self.config
        if not (c.bandwidth_bps or c.processing_us):
            return 0
        now = self.engine.now
        waiting_us = max(0, self._busy_until.get(src, 0) - now)
        if c.queue_bytes_max and c.bandwidth_bps and waiting_us * c.bandwidth_bps > c.queue_bytes_max * 8_000_000:
            return -1
        transmission_us = bytes_each * 8_000_000 // c.bandwidth_bps if c.bandwidth_bps else 0
        spent_us = waiting_us + c.processing_us + transmission_us
        self._busy_until[src] = now + spent_us
        return spent_us

    def _disorder(self, src: int, dst: int, msg: Message, info: int, tick: int) -> int:
        c, rng = self.config, self.rng
        if c.reordering and rng.random() < c.reordering:
            tick += self._ticks(int(rng.random() * c.reorder_us))
        if c.duplication and rng.random() < c.duplication:
            self.engine.copied(src, dst, info)
            self.engine.post(src, dst, msg, info, tick + self._ticks(self.delay_us(src, dst)))
        return tick

    def _arrival_tick(self, src: int, dst: int, delay_us: int) -> int:
        tick_us = self.engine.tick_us
        if self.latency.pairwise:
            return -(-(self.engine.now + delay_us) // tick_us) + self._ticks(self.latency.delay_us(src, dst, self.rng))
        return -(-(self.engine.now + delay_us) // tick_us) + self.engine.draw()

    def _ticks(self, us: int) -> int:
        return max(1, (us + self.engine.tick_us // 2) // self.engine.tick_us)

    def _chunk(self, count: int) -> list[int]:
        return self.latency.chunk(self.rng, count)

    def delay_us(self, src: int, dst: int) -> int:
        """One propagation delay, drawn."""
        if self.latency.pairwise:
            return self.latency.delay_us(src, dst, self.rng)
        return self.engine.draw() * self.engine.tick_us

    # Processes that cannot receive now

    def exists(self, node: int) -> bool:
        return self.engine.state[node] != DOWN

    def undeliverable(self, src: int, dst: int, msg: Message, bytes_each: int, info: int) -> None:
        if self.engine.state[dst] == PAUSED:
            self.when_awake(dst, self._redeliver, src, dst, msg)
        else:
            self.engine.drop(src, dst, msg, info, "down")

    def when_awake(self, node: int, fn: Callable[..., None], *args: Any) -> None:
        """Now, or when a paused process resumes; never if it is gone."""
        state = self.engine.state[node]
        if state == UP:
            fn(*args)
        elif state == PAUSED:
            self._asleep.setdefault(node, []).append((fn, args))
        elif fn == self._redeliver:
            self._drop_waiting(*args)

    def woke(self, node: int) -> None:
        """The process resumed: what it slept through happens now, in order."""
        for fn, args in self._asleep.pop(node, []):
            self.when_awake(node, fn, *args)  # any step may put it to sleep again, or end it

    def gone(self, node: int) -> None:
        """The process ended; nothing that waited for it can happen any more."""
        for fn, args in self._asleep.pop(node, []):
            if fn == self._redeliver:
                self._drop_waiting(*args)
        self._busy_until.pop(node, None)
        self.links.crash(node)

    def waiting(self) -> int:
        """Messages that arrived at paused processes, which will take them when they resume."""
        return sum(fn == self._redeliver for steps in self._asleep.values() for fn, _ in steps)

    def in_flight(self) -> int:
        """Messages that are neither received nor dropped."""
        return self.engine.in_flight() + self.waiting()

    def _redeliver(self, src: int, dst: int, msg: Message) -> None:
        self.engine.hand_over(src, dst, msg)

    def _drop_waiting(self, src: int, dst: int, msg: Message) -> None:
        info = self.engine.describe(msg, size(msg)) if self.engine.full else 0
        self.engine.drop(src, dst, msg, info, "down")

    def _overslept(self, timer: Timer) -> None:
        self.when_awake(timer.node, self._fire_late, timer)

    def _fire_late(self, timer: Timer) -> None:
        # Called here rather than armed anew, so that it keeps its place among the messages that waited with it.
        if timer.fn is not None:
            self.engine.events += 1
            timer.fn(*timer.args)
