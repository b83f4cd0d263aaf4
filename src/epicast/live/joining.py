"""Keeps a node in touch: asks seeds and whoever was discovered who they are, and tells the membership.

As long as there are no neighbours it tries again and again, with back-off and jitter. Later it looks up one seed now
and then, so that two clusters that started apart, or were parted for long, find each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol

from epicast.live.hub import Hub
from epicast.live.ids import Address
from epicast.live.seeds import Seeds

FIRST_WAIT_S, WAIT_MAX_S = 0.1, 5.0
AT_ONCE_MAX = 8
FOUND_MAX = 1024


class Discovery(Protocol):
    """A way to find processes of the cluster. `found` may be called again and again, with what is known already too."""

    async def start(self, me: Address, cluster: str, found: Callable[[Address], None]) -> None: ...

    def close(self) -> None: ...


class Joining:
    def __init__(
        self,
        hub: Hub,
        seeds: Seeds,
        me: Address,
        rng: Random,
        alone: Callable[[], bool],
        meet: Callable[[str], None],
    ) -> None:
        self._hub, self._seeds, self._me, self._rng = hub, seeds, me, rng
        self._alone, self._meet = alone, meet
        self._found: dict[Address, None] = {}  # by discovery
        self._wake = asyncio.Event()

    def found(self, address: Address) -> None:
        if address == self._me:
            return
        new = address not in self._found
        self._found.pop(address, None)
        self._found[address] = None
        if len(self._found) > FOUND_MAX:
            del self._found[next(iter(self._found))]  # not heard of for longest
        if new:
            self._wake.set()

    def look_again(self) -> None:
        """We may have lost our last neighbour."""
        self._wake.set()

    async def run(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            alone = self._alone()
            addresses = [*await self._seeds.addresses(self._hub.loop), *self._found]
            addresses = [address for address in addresses if address != self._me]
            self._rng.shuffle(addresses)
            for address in addresses[: AT_ONCE_MAX if alone else 1]:
                self._hub.dialling.probe(address, self._tell)
            if alone:
                wait_s = min(WAIT_MAX_S, 2 * wait_s)
                pause_s = wait_s * (0.5 + self._rng.random() / 2)
            else:
                wait_s = FIRST_WAIT_S
                pause_s = self._hub.limits.seeds_us / 1e6 * (0.5 + self._rng.random())
            await self._pause(pause_s)

    def _tell(self, address: Address, node: str, why: str) -> None:
        if node:
            self._meet(node)

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
