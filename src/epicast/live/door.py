"""Who gets in: the listening socket, the dialling, TLS, and the limits on those that have not greeted yet.

Connections are accepted one by one and counted before anything is read from them or TLS begins, so the limits hold for
those too that never finish a handshake.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from epicast.core.errors import EpicastError
from epicast.live import same_machine
from epicast.live.config import Limits
from epicast.live.ids import Address

if TYPE_CHECKING:
    from epicast.live.connection import Connection
    from epicast.live.tls import Tls

BACKLOG = 1024
TRY_AGAIN_S = 0.1


class Door:
    def __init__(self, limits: Limits, cluster: str, tls: Tls | None = None) -> None:
        self._limits, self._cluster = limits, cluster
        self._serving = tls.server_context() if tls is not None else None
        self._dialling = tls.client_context() if tls is not None else None
        self._local = limits.local_sockets and tls is None
        self._sockets: list[socket.socket] = []  # on which we listen
        self._loop: asyncio.AbstractEventLoop | None = None  # once it listens for knocks, as are the next two
        self._make: Callable[[], Connection]
        self._room: Callable[[], bool]
        self._tasks: set[asyncio.Task[None]] = set()
        self._inside: dict[Connection, None] = {}  # accepted, and not greeted yet
        self._by_address: Counter[str] = Counter()
        self.counters: Counter[str] = Counter()  # the hub's, once there is one

    # Listening

    async def listen(self, loop: asyncio.AbstractEventLoop, address: Address) -> Address:
        """The address that we got; nobody is let in before `let_in`."""
        try:
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, where = found[0]
            listener = socket.socket(family, kind, protocol)
            self._sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            self.shut()
            raise EpicastError(f"cannot listen at {address}: {error.strerror}; choose another address") from None
        host, port = listener.getsockname()[:2]
        got = Address(str(host), int(port))
        if self._local and (here := same_machine.listen(got, BACKLOG)) is not None:
            self._sockets.append(here)
        return got

    def let_in(self, loop: asyncio.AbstractEventLoop, make: Callable[[], Connection], room: Callable[[], bool]) -> None:
        """`room`: may there be one more connection?"""
        self._loop, self._make, self._room = loop, make, room
        for listener in self._sockets:
            self._listen_for(loop, listener)

    def _listen_for(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        if listener in self._sockets:
            loop.add_reader(listener, self._accept, loop, listener)

    def _accept(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        """Somebody knocks. Not a task: one that is cancelled at the wrong moment loses the socket that it was given."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # too many open files: some will be closed
            loop.remove_reader(listener)
            loop.call_later(TRY_AGAIN_S, self._listen_for, loop, listener)
            return
        accepted.setblocking(False)
        conn = self._make()
        conn.remote = same_machine.remote_of(address)
        trusted = conn.remote != same_machine.HERE or same_machine.is_of_our_user(accepted)
        if trusted and self._room() and self._admit(conn):
            welcome = self._start(loop, self._welcome(loop, conn, accepted))
            welcome.add_done_callback(partial(self._welcomed, conn, accepted))
        else:
            self.counters["connections refused"] += 1
            accepted.close()

    async def _welcome(self, loop: asyncio.AbstractEventLoop, conn: Connection, accepted: socket.socket) -> None:
        patience_s = self._limits.handshake_us / 1e6 if self._serving is not None else None
        with suppress(OSError):  # TLS failed; its errors are of this sort too
            await loop.connect_accepted_socket(
                lambda: conn, accepted, ssl=self._serving, ssl_handshake_timeout=patience_s
            )

    def _welcomed(self, conn: Connection, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        """Also if it was cancelled before it began."""
        if conn.transport is None:
            self.passed(conn)
            accepted.close()
        elif task.cancelled():  # its transport may have been closed without a word
            conn.cut("leaving")

    def _start(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _admit(self, conn: Connection) -> bool:
        """May this one try to greet?"""
        limits = self._limits
        if len(self._inside) >= limits.handshakes or self._by_address[conn.remote] >= limits.handshakes_per_address:
            return False
        self._inside[conn] = None
        self._by_address[conn.remote] += 1
        return True

    def passed(self, conn: Connection) -> None:
        """It has greeted, or is gone."""
        if conn in self._inside:
            del self._inside[conn]
            self._by_address[conn.remote] -= 1
            if not self._by_address[conn.remote]:
                del self._by_address[conn.remote]

    @property
    def secure(self) -> bool:
        """Is there TLS on every link?"""
        return self._serving is not None

    @property
    def handshakes(self) -> int:
        """Under way."""
        return len(self._inside)

    def shut(self) -> None:
        for task in self._tasks:
            task.cancel()
        for listener in self._sockets:
            if self._loop is not None:
                self._loop.remove_reader(listener)
            listener.close()
        self._sockets.clear()

    async def wait_shut(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Dialling

    async def connect(self, loop: asyncio.AbstractEventLoop, conn: Connection, address: Address) -> None:
        if self._local and (link := same_machine.dial(address)) is not None:
            await loop.create_unix_connection(lambda: conn, sock=link)
            return
        name = "" if self._dialling is not None else None
        await loop.create_connection(lambda: conn, address.host, address.port, ssl=self._dialling, server_hostname=name)

    def objection(self, conn: Connection, node_id: str) -> str:
        """Is the process at the other end the one that it says it is?"""
        if self._serving is None:
            return ""
        from epicast.live.tls import peer_identity, require_host

        try:
            identity = peer_identity(conn.transport.get_extra_info("ssl_object"))
            if identity.cluster != self._cluster:
                return f"certificate: it is for cluster {identity.cluster}"
            require_host(identity, node_id)
            conn.valid_until_s = identity.not_after.timestamp()
        except EpicastError as error:
            return f"certificate: {error}"
        return ""
