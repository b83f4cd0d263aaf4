"""All connections of a node: who is connected, who dials whom, what waits for whom.

A *link* joins us to one process. It is dialled when something is to be sent or when a protocol opens it, and it is
*held* while a protocol has it open: then the protocol is told when it comes up and when it goes.

    dialling --Welcome--> up --EOF, reset, cut--> gone
        \\--refused, no answer, another incarnation--> gone

When two processes dial each other at the same moment, the connection dialled by the smaller id stays. No frame is sent
before the greeting, so none is lost by that.
"""

from __future__ import annotations

import asyncio
import logging
import time
from time import monotonic_ns, thread_time_ns
from typing import Any, Protocol

from epicast.core.errors import WireError
from epicast.core.message import Message
from epicast.live.config import Limits
from epicast.live.congestion import Congestion
from epicast.live.connection import LINGER_S, Connection
from epicast.live.dialling import UNWANTED, Dialling
from epicast.live.door import Door
from epicast.live.effort import Part
from epicast.live.hello import CROSSING, YOURSELF, Hello, Refusal, Welcome, decode, encode, objection
from epicast.live.ids import Address, address_of
from epicast.live.local_calls import LocalCalls
from epicast.live.pace import LOOK_EVERY_US
from epicast.live.reasons import NO_GREETING, REFUSED
from epicast.live.sending import Link, Sending, sort_of
from epicast.live.told import Told
from epicast.wire.codec import HEADER_BYTES
from epicast.wire.frames import Run
from epicast.wire.streams import Known

log = logging.getLogger("epicast")

TURN = "its turn"  # what a connection waits for that has had one
TOGETHER_NS = 100_000  # what is read within so long after a turn belongs to it: a loop may read many times in a row
LONG_NS = 2_000_000  # of upkeep: after that it is worth asking the system whether we have worked all the time
ALIVE_EVERY_US = 50_000  # that a peer gives signs of life need not be noted with each


class Driver(Protocol):
    """Who is told what happens on links."""

    def link_up(self, peer: str) -> None: ...
    def link_down(self, peer: str, reason: str) -> None: ...
    def parted(self, peer: str) -> None: ...
    def message(self, conn: Connection, body: bytes) -> bool: ...
    def run(self, conn: Connection, run: Run | Part, over_ns: int) -> tuple[Part | None, bool]: ...
    def dropped(self, peer: str, msg: Message, reason: str) -> None: ...
    def alive(self, peer: str) -> None: ...
    def objection(self, peer: str) -> str: ...
    def met(self, peer: str, *, signs: bool, dialled: bool) -> None: ...
    def dial_failed(self, target: str, reason: str) -> None: ...
    def now_us(self) -> int: ...


class Hub(Sending):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, driver: Driver, greeting: Hello, door: Door, limits: Limits, rng: Any
    ) -> None:
        self.loop, self.driver, self.greeting, self.door, self.limits = loop, driver, greeting, door, limits
        self.me = greeting.node
        self.high_bytes = limits.peer_queue_high_bytes
        super().__init__()
        door.counters = self.counters
        self.current: Connection | None = None  # whose frames are being handled
        self.last = False  # of those that came together: is this the last one?
        self._last_at_work: Connection | None = None
        self._worked_until_ns = self._turn_began_ns = 0  # by it
        self.dialling, self.told = Dialling(self, rng), Told()
        self.congestion = Congestion(loop, limits, self.connections, self._cut_slow)
        self._open: dict[Connection, None] = {}  # also those that have not greeted, or are ending
        self._unwritten: list[Connection] = []
        self._watch = loop.call_later(LOOK_EVERY_US / 1e6, self._look)
        self._worked_ns = thread_time_ns()
        self.closed = False
        self.local_calls: LocalCalls | None = None

    def shout(self, msg: Message) -> None:
        if self.local_calls is not None:
            self.local_calls.shout(msg)

    # Held links

    def open(self, peer: str) -> None:
        link = self.links.get(peer) or self.reach(peer)
        if link is None:
            self.loop.call_soon(self._tell_down, peer, "unreachable")
            return
        if not link.held:
            link.held = True
            if link.conn is not None:
                self.loop.call_soon(self._tell_up, link)

    def close(self, peer: str) -> None:
        link = self.links.pop(peer, None)
        if link is None:
            return
        self.end_batch()
        if link.held:
            self.loop.call_soon(self._tell_parted, peer)
        link.held = False
        if link.conn is not None:
            link.conn.finish()
        for msg in link.waiting:
            self._drop(peer, msg, "closed")

    # Dialling

    def dropped(self, peer: str, msg: Message, reason: str) -> None:
        self.driver.dropped(peer, msg, reason)

    def reach(self, peer: str) -> Link | None:
        address = address_of(peer)
        if address is None or peer == self.me or self.closed or self.driver.objection(peer):
            return None
        now_us = self.driver.now_us()
        if not self.dialling.may(address) or len(self.links) >= self.limits.connections:
            return None
        if not self.told.may_dial(peer, self.current.peer if self.current is not None else "", now_us):
            self.counters["dials refused"] += 1
            return None
        link = self.links[peer] = Link(peer)
        self.dialling.dial(address, peer, link)
        link.dialling = True
        return link

    def give_up(self, link: Link, reason: str) -> None:
        del self.links[link.peer]
        for msg in link.waiting:
            self._drop(link.peer, msg, reason)
        if link.held:
            self.loop.call_soon(self._tell_down, link.peer, reason)

    # Connections: from the loop

    def connected(self, conn: Connection) -> None:
        self._open[conn] = None
        if self.closed or conn.closing:
            conn.cut("leaving")
            return
        conn.deadline(self.limits.handshake_us / 1e6, NO_GREETING)
        if conn.dialled:
            self._greet(conn, self.greeting)

    def room(self) -> bool:
        return not self.closed and len(self.links) < self.limits.connections

    def received(self, conn: Connection, frames: list[bytes | Run]) -> None:
        if conn.resting:
            conn.todo += frames
        else:
            self._work(conn, frames)

    def _go_on(self, conn: Connection) -> None:
        conn.resting, self._last_at_work = False, None  # it is its next turn
        frames, conn.todo = conn.todo, []
        self._work(conn, frames)
        if not conn.resting:
            conn.no_longer_wait_for(TURN)

    def _work(self, conn: Connection, frames: list[Any]) -> None:
        """For a while; then others have their turn, and nothing more is read from here until all is done."""
        self.current = conn
        began_ns = at_ns = monotonic_ns()
        if conn is not self._last_at_work or began_ns - self._worked_until_ns > TOGETHER_NS:
            self._turn_began_ns = began_ns
        over_ns, upkeep_ns = self._turn_began_ns + conn.effort.turn_ns, 0
        left: list[Any] = []
        try:
            for done, each in enumerate(frames):
                if conn.closing and conn.reason:
                    return
                if at_ns > over_ns:
                    left = frames[done:]
                    break
                part: Part | None = None
                if not conn.peer:
                    self._on_greeting(conn, each)
                    upkeep = False
                elif type(each) is bytes:
                    upkeep = self.driver.message(conn, each)
                else:
                    self.last = done == len(frames) - 1
                    part, upkeep = self.driver.run(conn, each, over_ns)
                before_ns, at_ns = at_ns, monotonic_ns()
                if upkeep:
                    upkeep_ns += at_ns - before_ns
                if part is not None:
                    left = [part, *frames[done + 1 :]]
                    break
        except WireError as error:
            self.nonsense(conn, str(error))
        except Exception:
            log.exception("what came from %s could not be handled; the connection is cut", conn.peer or conn.remote)
            self.nonsense(conn, "it could not be handled")
        finally:
            self.current = None
            self._flush_all()
        self._end_turn(conn, left, upkeep_ns, over_ns)

    def _end_turn(self, conn: Connection, left: list[Any], upkeep_ns: int, over_ns: int) -> None:
        self._last_at_work, self._worked_until_ns = conn, (now_ns := monotonic_ns())
        if upkeep_ns > LONG_NS:
            upkeep_ns = min(upkeep_ns, self._worked_since_last_asked_ns())
        rest_s = conn.effort.spend(upkeep_ns, now_ns) if upkeep_ns else 0.0
        if left or rest_s or now_ns > over_ns:
            conn.todo, conn.resting = left, True
            conn.wait_for(TURN)
            if rest_s:
                self.counters["peers held back"] += 1
                self.loop.call_later(rest_s, self._go_on, conn)
            else:
                self.loop.call_soon(self._go_on, conn)
        now_us = now_ns // 1000
        if conn.peer and now_us - conn.used_us > ALIVE_EVERY_US:
            conn.used_us = now_us
            self.driver.alive(conn.peer)

    def _worked_since_last_asked_ns(self) -> int:
        """A peer does not pay for the time in which other processes had our processor. The answer costs a system call,
        so not every turn begins with one."""
        before_ns, self._worked_ns = self._worked_ns, thread_time_ns()
        return self._worked_ns - before_ns

    def flush_later(self, conn: Connection) -> None:
        """At the end of what is being handled, or else of this turn of the loop: what goes out together is written
        together, and what passes through does not wait for another turn."""
        if self.current is None and not self._unwritten:
            self.loop.call_soon(self._flush_all)
        self._unwritten.append(conn)

    def handed_on(self) -> None:
        """What passes through goes on before it is delivered here, unless more is to be written with it."""
        if self.last:
            self._flush_all()

    def _flush_all(self) -> None:
        if self.batch is not None:
            self.end_batch()
        unwritten, self._unwritten = self._unwritten, []
        for conn in unwritten:
            conn.flush()

    def nonsense(self, conn: Connection, what: str) -> None:
        self.counters["nonsense"] += 1
        conn.cut(f"nonsense: {what}")

    def lost(self, conn: Connection) -> None:
        self.end_batch()
        opened = conn in self._open
        self._open.pop(conn, None)
        self.door.passed(conn)
        self.congestion.release(conn)
        if conn.frames_waiting:
            self.counters[f"dropped: {sort_of(conn.reason)}"] += conn.frames_waiting
        if not conn.peer:
            self.counters["handshakes failed"] += opened
            if conn.dialled and not self.closed:
                self.dialling.failed(conn)
            return
        self.counters[f"ended: {sort_of(conn.reason)}"] += 1
        self.count_sent(conn)
        link = self.links.get(conn.peer)
        if link is not None and link.conn is conn:
            del self.links[conn.peer]
            if link.held:
                self._tell_down(conn.peer, conn.reason)

    # Greetings

    def _greet(self, conn: Connection, what: Hello | Welcome | Refusal) -> None:
        body = encode(what)
        conn.send(len(body).to_bytes(HEADER_BYTES, "big") + body)

    def _on_greeting(self, conn: Connection, body: bytes) -> None:
        said = decode(body)
        if conn.dialled and isinstance(said, Welcome):
            self._on_welcome(conn, said)
        elif conn.dialled and isinstance(said, Refusal):
            known = said.reason in (CROSSING, YOURSELF)
            if known and address_of(said.node):
                self.dialling.found(conn.target, said.node)
            conn.cut(said.reason if known else f"{REFUSED}: {said.reason}")
        elif not conn.dialled and isinstance(said, Hello):
            self._on_hello(conn, said)
        else:
            raise WireError("a greeting out of turn")

    def _on_hello(self, conn: Connection, hello: Hello) -> None:
        reason = objection(hello, self.greeting.cluster, self.greeting.stack) or self.door.objection(conn, hello.node)
        reason = reason or self.driver.objection(hello.node)
        if not reason and address_of(hello.node) is None:
            reason = "a bad id"
        if not reason and hello.node == self.me:
            reason = YOURSELF
        reason = reason or self._crossing(hello.node)
        if reason:
            if reason not in (CROSSING, YOURSELF):
                self.counters[f"refused: {sort_of(reason)}"] += 1
            self._greet(conn, Refusal(reason[:255], self.me))
            conn.reason = reason
            conn.finish()
            return
        self._greet(conn, Welcome(self.me, self.greeting.area, self.greeting.signs))
        self._established(conn, hello)

    def _crossing(self, peer: str) -> str:
        """There is a connection to this process, or ours is on its way: which of them stays?"""
        link = self.links.get(peer)
        if link is None:
            return ""
        if link.conn is None:
            return CROSSING if link.dialling and self.me < peer else ""
        heard_lately = self.driver.now_us() - link.conn.used_us < self.limits.handshake_us
        if heard_lately and not link.conn.closing:
            return CROSSING
        link.conn.cut("replaced by a newer connection")  # the peer has lost it, and we have not noticed
        return ""

    def _on_welcome(self, conn: Connection, welcome: Welcome) -> None:
        target = conn.target
        address = target if isinstance(target, Address) else address_of(target)
        objection = self.door.objection(conn, welcome.node) or self.driver.objection(welcome.node)
        if objection or address_of(welcome.node) is None:
            conn.cut(objection or "a bad id")
            return
        assert address is not None
        self.dialling.reached(address)
        if isinstance(target, str) and welcome.node != target:
            conn.cut("gone: another process is there now")
            return
        existing = self.links.get(welcome.node)
        if existing is not None and existing.conn is not None:
            conn.cut(CROSSING)
        elif isinstance(target, str) and existing is None:
            conn.reason = UNWANTED
            conn.finish()
        else:
            self.told.reached(welcome.node)
            self._established(conn, welcome)
        self.dialling.found(target, welcome.node)

    def _established(self, conn: Connection, said: Hello | Welcome) -> None:
        peer = said.node
        conn.no_deadline()
        self.door.passed(conn)
        self.driver.met(peer, signs=said.signs, dialled=conn.dialled)
        conn.greeted(peer, Known(self.decoder, self.shapes), self.limits, far=said.area != self.greeting.area)
        conn.since_us = conn.used_us = self.driver.now_us()
        self.end_batch()  # which may be for another connection to it
        link = self.links.get(peer)
        if link is None:
            link = self.links[peer] = Link(peer)
        link.conn, link.dialling = conn, False
        self.congestion.welcome(conn)
        waiting, link.waiting = link.waiting, []
        for msg in waiting:
            self._transmit(conn, msg)
        if link.held:
            self.loop.call_soon(self._tell_up, link)

    def _tell_up(self, link: Link) -> None:
        if link.held and link.conn is not None and self.links.get(link.peer) is link:
            self.driver.link_up(link.peer)

    def _tell_down(self, peer: str, reason: str) -> None:
        if not self.closed:
            self.driver.link_down(peer, reason)

    def _tell_parted(self, peer: str) -> None:
        if not self.closed:
            self.driver.parted(peer)

    # Peers that cannot keep up

    def busy(self, conn: Connection) -> None:
        self.congestion.busy(conn, self.current)

    def drained(self, conn: Connection) -> None:
        self.congestion.drained(conn)

    def connections(self) -> list[Connection]:
        return [link.conn for link in self.links.values() if link.conn is not None]

    def _cut_slow(self, conn: Connection, reason: str) -> None:
        self.counters["slow peers cut"] += 1
        conn.cut(reason)

    def _look(self) -> None:
        self._watch = self.loop.call_later(LOOK_EVERY_US / 1e6, self._look)
        self._worked_since_last_asked_ns()
        now_us, now_s = self.driver.now_us(), time.time()
        for link in list(self.links.values()):
            conn = link.conn
            if conn is None or conn.closing:
                continue
            if conn.valid_until_s < now_s:
                conn.cut("certificate: it has expired")
                continue
            if conn.paused:
                self.driver.alive(link.peer)  # we do not listen to it just now
            if not link.held and not conn.waiting_bytes and conn.used_us < now_us - self.limits.idle_us:
                del self.links[link.peer]
                conn.reason = "idle"
                conn.finish()
        self.congestion.look(now_us)
        self.told.forget(now_us)

    # The end

    async def shut(self) -> None:
        """After all that was sent."""
        self.closed = True
        self._watch.cancel()
        for conn in list(self._open):
            conn.finish()
        self.door.shut()
        self.congestion.close()
        await self.dialling.stop()
        await self.door.wait_shut()
        deadline = self.loop.time() + LINGER_S
        while self._open and self.loop.time() < deadline:
            await asyncio.sleep(0.002)
        for conn in list(self._open):
            conn.cut("leaving")
        while self._open:  # GONE_S at most
            await asyncio.sleep(0.002)
