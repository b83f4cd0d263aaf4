"""Connections that we ask for: to processes for which there are messages, and to addresses where we want to know which
process listens.

Each dial is a task with a deadline, and ends in a connection that greets, or in `Connection.end`: also when it was
cancelled, or timed out in the moment in which it succeeded. An address that could not be reached is left alone for a
while; probes go there all the same, since joining has a back-off of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from epicast.live.backoff import Backoff
from epicast.live.connection import Connection
from epicast.live.hello import CROSSING, YOURSELF
from epicast.live.ids import Address, address_of
from epicast.live.reasons import HANDSHAKE_CUT, said

if TYPE_CHECKING:
    from epicast.live.hub import Hub
    from epicast.live.sending import Link

CROSSING_RETRY_S = 0.25
UNWANTED = "not wanted any more"  # a connection whose link was closed while we dialled

Tell = Callable[[Address, str, str], None]
"""Of a probe: the address, the process that listens there or "", and why we cannot talk to any."""


class Dialling:
    def __init__(self, hub: Hub, rng: Random) -> None:
        self._hub = hub
        self._backoff = Backoff(hub.limits.backoff_us, hub.limits.backoff_max_us, rng)
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes: dict[Address, list[Tell]] = {}

    def may(self, address: Address) -> bool:
        return not self._backoff.wait_us(address, self._hub.driver.now_us())

    def dial(self, address: Address, target: str | Address, link: Link | None = None) -> None:
        task = self._hub.loop.create_task(self._dial(address, target, link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, address: Address, target: str | Address, link: Link | None) -> None:
        hub = self._hub
        conn = Connection(hub, dialled=True)
        conn.target, conn.link = target, link
        try:
            async with asyncio.timeout(hub.limits.handshake_us / 1e6):
                await hub.door.connect(hub.loop, conn, address)
        except asyncio.CancelledError:
            conn.end("leaving")
            raise
        except Exception as error:  # of many sorts: a name that is none, TLS, a loop that closed what it had opened
            conn.end(_why(error, tls=hub.door.secure))

    def probe(self, address: Address, tell: Tell) -> None:
        """Find out which process listens at an address."""
        for link in self._hub.links.values():
            if link.conn is not None and not link.conn.closing and address_of(link.peer) == address:
                self._hub.loop.call_soon(tell, address, link.peer, "")
                return
        waiting = self._probes.setdefault(address, [])
        waiting.append(tell)
        if len(waiting) == 1:
            self.dial(address, address)

    def found(self, target: str | Address, node: str, why: str = "") -> None:
        """The answer to a probe, if it was one."""
        if isinstance(target, Address):
            for tell in self._probes.pop(target, ()):
                self._hub.loop.call_soon(tell, target, node, why)

    def reached(self, address: Address) -> None:
        self._backoff.reached(address)

    def failed(self, conn: Connection) -> None:
        """It ended before its greeting was over."""
        target, hub = conn.target, self._hub
        if conn.reason == UNWANTED:
            return
        if conn.reason == CROSSING and conn.link is not None:
            hub.loop.call_later(CROSSING_RETRY_S, self._dial_again, conn.link)
            return
        address = target if isinstance(target, Address) else address_of(target)
        if address is not None and conn.reason not in (CROSSING, YOURSELF):
            self._backoff.failed(address, hub.driver.now_us())
            hub.counters["dials failed"] += 1
            hub.driver.dial_failed(str(target), conn.reason)
        self.found(target, "", conn.reason)
        link = conn.link
        if link is not None and link.conn is None and hub.links.get(link.peer) is link:
            hub.give_up(link, f"unreachable: {conn.reason}")

    def _dial_again(self, link: Link) -> None:
        """The other connection should have come by now."""
        address = address_of(link.peer)
        if self._hub.links.get(link.peer) is link and link.conn is None and not self._hub.closed:
            assert address is not None
            self.dial(address, link.peer, link)

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _why(error: BaseException, *, tls: bool) -> str:
    if tls and isinstance(error, ConnectionResetError):
        return HANDSHAKE_CUT
    return said(error)
