"""Whether a node has joined: what it publishes from then on reaches others. And if it has not, why.

A node has joined when it has a neighbour, or when it is the first: it has no seeds and discovers nobody, or it is among
its seeds and no other process is there (`epicast.live.search`). Besides, its orders must know where its duty begins, so
that what others publish from then on is delivered as soon as it comes (`epicast.ordering.beginnings`).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from epicast.core.errors import EpicastError

if TYPE_CHECKING:
    from epicast.live.node import Node

LOOK_S, LOOK_SOON_S = 0.1, 0.01


class Readiness:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._changed = asyncio.Event()

    def look(self) -> None:
        """A link came or went."""
        self._changed.set()

    def joined(self) -> bool:
        return self._among_others() and self._node._stack_node.settled()

    def _among_others(self) -> bool:
        return bool(self._node.neighbours) or self.first()

    def first(self) -> bool:
        """Are we the first process, and no other is there?"""
        node = self._node
        return not node.neighbours and (not (node._seeds or node._discovery) or node._joining.first)

    def words(self) -> str:
        """For `/healthz`."""
        if self.joined():
            return "joined"
        return "not settled" if self._among_others() else "no neighbours"

    def why(self) -> str:
        """What a node that has not joined waits for."""
        node = self._node
        if self._among_others():
            return "the order of its messages has not settled yet"
        if node._stack_node.membership.peers():
            return "no connection to a neighbour is up yet"
        if node._joining.search.knows_nobody:
            return f"no process of cluster {node.cluster!r} was heard on the local network"
        return node._joining.search.why()

    async def wait(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not self.joined():
                    self._changed.clear()
                    look_s = LOOK_SOON_S if self._among_others() else LOOK_S  # an order settles within moments
                    with suppress(TimeoutError):  # neither it nor a membership without links tells
                        await asyncio.wait_for(self._changed.wait(), look_s)
        except TimeoutError:
            begin = "not ready" if self._among_others() else "nobody let us in"
            raise EpicastError(f"{begin} within {timeout_s:g} s: {self.why()}") from None
