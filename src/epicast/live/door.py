"""Who gets in: the listening socket, the dialling, TLS, and the limits on those that have not greeted yet."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from typing import TYPE_CHECKING, Any

from epicast.core.errors import EpicastError
from epicast.live.config import Limits
from epicast.live.ids import Address

if TYPE_CHECKING:
    from epicast.live.connection import Connection
    from epicast.live.tls import Tls


class Door:
    def __init__(self, limits: Limits, cluster: str, tls: Tls | None = None) -> None:
        self._limits, self._cluster = limits, cluster
        self._serving = tls.server_context() if tls is not None else None
        self._dialling = tls.client_context() if tls is not None else None
        self._server: asyncio.Server | None = None
        self._inside: dict[Connection, None] = {}  # accepted, and not greeted yet
        self._by_address: Counter[str] = Counter()
        self._secured: dict[Connection, None] = {}

    @property
    def secure(self) -> bool:
        return self._serving is not None

    # Listening

    async def listen(self, loop: asyncio.AbstractEventLoop, make: Any, address: Address) -> Address:
        try:
            self._server = await loop.create_server(make, address.host, address.port, backlog=1024)
        except OSError as error:
            raise EpicastError(f"cannot listen at {address}: {error.strerror}; choose another address") from None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(str(host), int(port))

    def shut(self) -> None:
        if self._server is not None:
            self._server.close()
        for conn in list(self._inside):
            conn.cut("leaving")

    def admit(self, conn: Connection, connected: int) -> bool:
        """May this one try to greet?"""
        if conn in self._inside:
            return True
        full = len(self._inside) >= self._limits.handshakes or connected >= self._limits.connections
        if full or self._by_address[conn.remote] >= self._limits.handshakes_per_address:
            return False
        self._inside[conn] = None
        self._by_address[conn.remote] += 1
        return True

    def passed(self, conn: Connection) -> None:
        """It has greeted, or is gone."""
        self._secured.pop(conn, None)
        if conn in self._inside:
            del self._inside[conn]
            self._by_address[conn.remote] -= 1
            if not self._by_address[conn.remote]:
                del self._by_address[conn.remote]

    left = passed

    @property
    def handshakes(self) -> int:
        return len(self._inside)

    # TLS

    def secured(self, conn: Connection) -> bool:
        return conn in self._secured

    async def secure_accepted(self, loop: asyncio.AbstractEventLoop, conn: Connection) -> None:
        assert self._serving is not None
        try:
            transport = await loop.start_tls(
                conn.transport,
                conn,
                self._serving,
                server_side=True,
                ssl_handshake_timeout=self._limits.handshake_us / 1e6,
            )
        except (TimeoutError, OSError, ssl.SSLError) as error:
            conn.reason = f"TLS: {_reason(error)}"
            conn.cut(conn.reason)
            conn.connection_lost(None)
            return
        if transport is None:
            conn.cut("TLS: gone")
            return
        self._secured[conn] = None
        conn.connection_made(transport)

    async def connect(self, loop: asyncio.AbstractEventLoop, conn: Connection, address: Address) -> None:
        name = "" if self._dialling is not None else None
        await loop.create_connection(lambda: conn, address.host, address.port, ssl=self._dialling, server_hostname=name)

    def objection(self, conn: Connection, node_id: str) -> str:
        """Is the process at the other end the one that it says it is?"""
        if not self.secure:
            return ""
        from epicast.live.tls import peer_identity, require_host

        try:
            identity = peer_identity(conn.transport.get_extra_info("ssl_object"))
            if identity.cluster != self._cluster:
                return f"its certificate is for cluster {identity.cluster}"
            require_host(identity, node_id)
        except EpicastError as error:
            return str(error)
        return ""


def _reason(error: BaseException) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__)
