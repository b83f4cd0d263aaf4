"""Peers that cannot keep up, and who must wait for them.

Above the high mark of a peer's queue, publishers wait, and so does whoever sends us what we hand on to that peer: we
stop reading from it. So pressure travels up to the publisher, link by link, and where all are merely busy nobody loses
anything.

Nobody waits for one that is *slow*: what waits for it would take it long, while others keep up. It gets a longer queue,
and is cut if it stays slow. When that queue is full too it is cut sooner, and until then others wait: without that
limit, those who get their messages through it would miss more than others keep for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from epicast.live.config import Limits
from epicast.live.connection import Connection
from epicast.live.pace import Ease

SLOW_PART = 8  # of the longest queue: so much waits for a peer that is slow, a quarter of what recovery keeps
FELLOW_PART = 8  # of the events that a peer is sent; more than others if it asks for what it missed

Cut = Callable[[Connection, str], None]


class Congestion:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        connections: Callable[[], Iterable[Connection]],
        cut: Cut,
    ) -> None:
        self._loop, self._limits, self._connections, self._cut = loop, limits, connections, cut
        self._congested: dict[Connection, None] = {}
        self._waiting: list[asyncio.Future[None]] = []  # publishers
        self._holders: dict[object, None] = {}  # subscribers that block
        self._slow_queue_bytes = limits.peer_queue_bytes // SLOW_PART
        self._ease = Ease()
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._congested)

    def busy(self, conn: Connection, feeder: Connection | None) -> None:
        """More waits for it than the high mark; `feeder` sent us what we want to hand on."""
        if conn.closing:
            return
        if conn.waiting_bytes > self._limits.peer_queue_bytes:
            self._cut(conn, f"slow peer: more than {self._limits.peer_queue_bytes:,} bytes behind")
            return
        if self._holds_up_nobody(conn):
            return
        self._congested[conn] = None
        if feeder is not None:
            feeder.wait_for(conn)

    def drained(self, conn: Connection) -> None:
        if conn in self._congested and conn.waiting_bytes <= self._limits.peer_queue_high_bytes // 2:
            self.release(conn)

    def look(self, now_us: int) -> None:
        """Now and then: who is slow, and who should be cut for it?"""
        high = self._limits.peer_queue_high_bytes
        conns = [conn for conn in self._connections() if not conn.closing]
        at_ease = self._ease.look(now_us)
        for conn in conns:
            conn.pace.look(now_us, conn.taken_bytes, conn.waiting_bytes, conn.fed_bytes, conn.received_bytes)
            if conn.taken_bytes > high and conn.waiting_bytes <= high // 4:
                conn.pace.has_kept_up = True
        for conn in conns:
            conn.pace.found(slow=self._is_slow(conn, conns, at_ease))
        for conn in conns:
            reason = self._too_slow(conn)
            if reason:
                self._cut(conn, reason)
            elif self._holds_up_nobody(conn):
                self.release(conn)
            else:
                self.drained(conn)  # should we not have been told

    def _is_slow(self, conn: Connection, conns: list[Connection], at_ease: bool) -> bool:
        """Do others keep up, while it does not? Others are those who are sent as much; where we hand on to nobody else
        what comes, we ourselves, if we have little to do."""
        high, some = self._limits.peer_queue_high_bytes, conn.pace.fed / FELLOW_PART
        if conn.waiting_bytes <= high // 2 or conn.pace.lag_us <= self._limits.lag_us:
            return False
        others = [other for other in conns if other is not conn]
        fellows = [other for other in others if other.pace.fed >= some]
        if fellows:
            return any(fellow.waiting_bytes <= high // 4 for fellow in fellows)
        some = max(some, high // 64)  # keep-alives come too
        return at_ease and any(other.pace.feeds >= some for other in others)

    def _too_slow(self, conn: Connection) -> str:
        """Time enough for whoever has kept up before; for who has not, the longer queue must do."""
        limits, pace = self._limits, conn.pace
        if pace.stalled_for_us >= limits.stall_us:
            return f"slow peer: took nothing for {limits.stall_us / 1e6:g} s"
        patience_us = limits.slow_us
        if conn.waiting_bytes > self._slow_queue_bytes:
            patience_us = patience_us // 2 if pace.has_kept_up else 1
        if pace.slow_for_us >= patience_us:
            return f"slow peer: {conn.waiting_bytes:,} bytes behind, and others are not"
        return ""

    def _holds_up_nobody(self, conn: Connection) -> bool:
        return bool(conn.pace.slow_for_us) and conn.waiting_bytes <= self._slow_queue_bytes

    def release(self, conn: Connection) -> None:
        """Nobody waits for it any more."""
        if conn not in self._congested:
            return
        del self._congested[conn]
        self.let_go(conn)
        if not self._congested:
            self._wake()

    async def room(self) -> None:
        """Wait until every peer can take more."""
        while self._congested and not self._closed:
            future = self._loop.create_future()
            self._waiting.append(future)
            await future

    def hold(self, who: object) -> None:
        """Read from nobody until it is let go: a subscriber that blocks."""
        self._holders[who] = None
        for conn in self._connections():
            conn.wait_for(who)

    def welcome(self, conn: Connection) -> None:
        """A new connection waits like all others."""
        for who in self._holders:
            conn.wait_for(who)

    def let_go(self, who: object) -> None:
        self._holders.pop(who, None)
        for conn in self._connections():
            conn.no_longer_wait_for(who)

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
