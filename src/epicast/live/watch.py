"""Looks at a node now and then, and writes to the log what an operator wants to know. At most some lines a look."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from epicast.live.status import WHY_LENGTH_MAX, joined, printable

if TYPE_CHECKING:
    from epicast.live.node import Node

EVERY_S = 0.5
ALONE_S = 10.0
"""How long without neighbours before it is worth a word; then after twice that time, and so on."""
NEIGHBOURS_MAX = 10

TROUBLE = {
    "slow peers cut": "peers were cut: they did not take what was sent to them",
    "nonsense": "connections were cut: what came was no message",
    "bad signatures": "messages had no good signature",
    "replays": "signed messages came a second time",
    "lost by subscribers": "messages were lost by subscribers that do not keep up",
    "connections refused": "connections were refused: too many",
}
"""Counters that should stay where they are."""

log = logging.getLogger("epicast")


class Watch:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._neighbours: dict[str, None] = {}
        self._counted = dict.fromkeys(TROUBLE, 0)
        self._alone_s = 0.0
        self._patience_s = ALONE_S
        self._was_first = False

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(EVERY_S)

    def look(self) -> None:
        self._look_at_neighbours()
        self._look_at_counters()

    def _look_at_neighbours(self) -> None:
        now = dict.fromkeys(self._node.neighbours)
        new = [peer for peer in now if peer not in self._neighbours]
        gone = [peer for peer in self._neighbours if peer not in now]
        if new and not self._neighbours:
            log.info("joined: %s", _listed(new))
        elif new:
            log.info("new neighbours: %s", _listed(new))
        if gone:
            log.info("no longer neighbours: %s", _listed(gone))
        self._neighbours = now
        self._look_for_anybody()

    def _look_for_anybody(self) -> None:
        first = self._node._readiness.first()
        if first and not self._was_first and self._node._seeds:
            log.info("no other process is there: this node is the first")
        self._was_first = first
        if joined(self._node):
            self._alone_s, self._patience_s = 0.0, ALONE_S
            return
        self._alone_s += EVERY_S
        if self._alone_s >= self._patience_s:
            why = printable(self._node._readiness.why(), WHY_LENGTH_MAX)
            log.warning("no neighbours for %.0f s: %s", self._alone_s, why)
            self._patience_s *= 2

    def _look_at_counters(self) -> None:
        counters = self._node._hub.counters
        for name, what in TROUBLE.items():
            fresh = counters.get(name, 0) - self._counted[name]
            if fresh:
                self._counted[name] += fresh
                log.warning("%d %s", fresh, what)


def _listed(peers: list[str]) -> str:
    more = f" and {len(peers) - NEIGHBOURS_MAX} more" if len(peers) > NEIGHBOURS_MAX else ""
    return ", ".join(printable(peer) for peer in peers[:NEIGHBOURS_MAX]) + more
