"""Peers that cannot keep up, and who must wait for them.

Above the high mark of a peer's queue, publishers wait, and so does whoever sends us what we hand on to that peer: we
stop reading from it. So pressure travels up to the publisher, link by link. A peer that takes nothing for too long, or
lags for too long, is cut: others wait for it no longer than that.

A peer that is *stuck* neither takes nor says anything. Nobody waits for it until much more has come to wait; without
that limit, those who get their messages through it would miss more than others keep for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from epicast.live.config import Limits
from epicast.live.connection import Connection

STUCK_PART = 8  # of the longest queue: so much waits for a peer that is stuck, a quarter of what recovery keeps

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
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._congested)

    def busy(self, conn: Connection, feeder: Connection | None) -> None:
        """More waits for it than the high mark; `feeder` sent us what we want to hand on."""
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

    def look(self, conn: Connection) -> None:
        """Now and then: should we not have been told that it has drained, or is it stuck?"""
        if self._holds_up_nobody(conn):
            self.release(conn)
        else:
            self.drained(conn)

    def _holds_up_nobody(self, conn: Connection) -> bool:
        return conn.watch.stuck and conn.waiting_bytes <= self._limits.peer_queue_bytes // STUCK_PART

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
