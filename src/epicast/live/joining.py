"""Keeps a node in touch: asks seeds and discovered addresses which processes listen there, and tells the membership.

As long as there are no neighbours it tries again and again, with back-off and jitter. Later it looks up one seed now
and then, so that two clusters that started apart, or were parted for long, find each other. When the link to a process
at a seed's address ends, that address is asked for a while: a seed that starts again may know no other process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol

from epicast.core.roles import Membership
from epicast.live.hub import Hub
from epicast.live.ids import Address, address_of
from epicast.live.search import Search
from epicast.live.seeds import Lookup, Seeds

FIRST_WAIT_S, WAIT_MAX_S = 0.1, 5.0
AT_ONCE_MAX = 8
FOUND_MAX = 1024
RETURN_S, RETURN_WAIT_MAX_S = 60.0, 3.0
"""How long a seed whose link has ended is asked whether it is back, and at least how often."""


class Discovery(Protocol):
    """A way to find processes of the cluster. `found` may be called again and again, with what is known already too."""

    async def start(self, me: Address, cluster: str, found: Callable[[Address], None]) -> None: ...

    def close(self) -> None: ...


class Joining:
    def __init__(
        self,
        hub: Hub,
        seeds: Seeds,
        mine: list[Address],
        rng: Random,
        members: Membership,
        became_first: Callable[[], None],
    ) -> None:
        self._hub, self._seeds, self._mine, self._rng = hub, seeds, mine, rng
        self._members, self._became_first = members, became_first
        self.search = Search(mine, hub.limits.first_us / 1e6, hub.loop.time)
        self._found: dict[Address, None] = {}  # by discovery
        self._seats: dict[Address, Address] = {}  # of seeds: the address to dial when the process there has gone
        self._returning: dict[Address, float] = {}  # until when to ask there
        self._wake = asyncio.Event()
        self._was_first = self._runs = False

    # From the node

    def found(self, address: Address) -> None:
        if address in self._mine:
            return
        new = address not in self._found
        self._found.pop(address, None)
        self._found[address] = None
        if len(self._found) > FOUND_MAX:
            del self._found[next(iter(self._found))]  # not heard of for longest
        if new:
            self._wake.set()

    def look_again(self) -> None:
        """Neighbours may have come or gone."""
        self._refresh()
        if self.search.on:
            self._wake.set()

    def parted(self, peer: str) -> None:
        """The link to a neighbour has ended."""
        address = address_of(peer)
        seat = self._seats.get(address) if address is not None else None
        if seat is not None and self._runs:
            self._returning[seat] = self._hub.loop.time() + RETURN_S
            self._wake.set()
        self._refresh()

    def connected(self, peer: str) -> None:
        """A process of the cluster has connected to us. While we are alone, it is one to join through."""
        self._refresh()
        if self.search.on and self._runs:
            self.search.heard()
            self._members.meet(peer)

    @property
    def first(self) -> bool:
        """Are we, among the seeds, the first process of the cluster?"""
        self._refresh()
        return self.search.is_first()

    # The search

    def _refresh(self) -> None:
        alone = not self._members.peers()
        if alone != self.search.on:
            if alone:
                self.search.begin()
                self._wake.set()
            else:
                self.search.end()

    async def run(self) -> None:
        self._runs = True
        wait_s = FIRST_WAIT_S
        while True:
            self._refresh()
            lookups = await self._seeds.lookups(self._hub.loop)
            self.search.looked_up(lookups, self._found)
            self._seats = _seats(lookups, self._mine)
            alone, returning = self.search.on, self._still_returning()
            targets = self.search.targets(self._rng, AT_ONCE_MAX if alone else 1)
            for address in dict.fromkeys([*targets, *returning]):
                self._hub.dialling.probe(address, self._tell)
            if alone or returning:
                wait_s = min(WAIT_MAX_S if alone else RETURN_WAIT_MAX_S, 2 * wait_s)
                pause_s = wait_s * (0.5 + self._rng.random() / 2)
            else:
                wait_s = FIRST_WAIT_S
                pause_s = self._hub.limits.seeds_us / 1e6 * (0.5 + self._rng.random())
            await self._pause(pause_s)

    def _still_returning(self) -> list[Address]:
        now = self._hub.loop.time()
        for address in [address for address, until_s in self._returning.items() if until_s < now]:
            del self._returning[address]
        return list(self._returning)

    def _tell(self, address: Address, node: str, why: str) -> None:
        if node == self._hub.me:
            self.search.found_us(address)
        else:
            self.search.answered(address, why)
        if node:
            self._returning.pop(address, None)
            self._members.meet(node)
        self._note_first()

    def _note_first(self) -> None:
        was, self._was_first = self._was_first, self.first
        if self._was_first and not was:
            self._became_first()

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        deadline = self._hub.loop.time() + seconds
        while (left_s := deadline - self._hub.loop.time()) > 0:
            patience_s = self.search.left_s
            try:
                async with asyncio.timeout(min(left_s, patience_s) if self.search.on and patience_s > 0 else left_s):
                    await self._wake.wait()
                return
            except TimeoutError:
                self._note_first()


def _seats(lookups: list[Lookup], mine: list[Address]) -> dict[Address, Address]:
    """By every address under which a seed may be known, where to dial it: by its name, if that names one process."""
    seats: dict[Address, Address] = {}
    for lookup in lookups:
        if lookup.address is None or lookup.address in mine:
            continue
        single = len(lookup.found) <= 1
        for address in (lookup.address, *lookup.found):
            seats[address] = lookup.address if single else address
    return seats
