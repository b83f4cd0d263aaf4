"""What a stack promises, held against what a storm made of it: no more and no less.

every second        sizes of views, buffers and waiting rooms; parents; nobody in its own view (`checks.unsafe`)
at rest             the overlay, as its membership builds it; trees, where they are promised; everything delivered,
                    where agreement is promised, and otherwise every hole told as a gap
from the history    nothing repeated or invented, no publisher without its own message, no false gap, no inversion
                    of a promised order
"""

from __future__ import annotations

from epicast.sim import checks
from epicast.sim.history import SHOWN, History
from epicast.sim.storm_draw import ORDERS
from epicast.sim.world import World

MOMENT_US = 6_000_000  # within which both sides of a link agree on it


class Judge:
    """Watches a world from its beginning."""

    def __init__(self, world: World) -> None:
        self.world, self.history = world, History(world)
        self.promises = frozenset(world.stack.promises)
        self._odd_since: dict[str, int] = {}
        self._whole = False

    def unsafe(self) -> list[str]:
        return checks.unsafe(self.world)

    def unrest(self) -> list[str]:
        """What is not in order yet."""
        return checks.overlay(self.world) or self._lasting() or self._crooked() or self._missing()

    def broken(self) -> list[str]:
        """Once the world has come to rest: what no time can mend."""
        history = self.history
        self.world.engine.flush()
        found = history.wrong[:SHOWN] + history.own_lost()[:SHOWN] + history.false_gaps()[:SHOWN]
        for order in ORDERS:
            if order in self.promises:
                found += [f"{line} ({order})" for line in history.inversions(order)[:SHOWN]]
        return found

    def _lasting(self) -> list[str]:
        """What may look wrong for a moment, while links are made and ended, but has done so for longer."""
        if not checks.is_symmetric(self.world):
            return []
        now_us = self.world.now_us
        odd = checks.one_sided(self.world) + checks.thin(self.world)
        self._odd_since = {line: self._odd_since.get(line, now_us) for line in odd}
        return [line for line, since_us in self._odd_since.items() if since_us <= now_us - MOMENT_US]

    def _crooked(self) -> list[str]:
        return checks.trees(self.world) if "tree" in self.promises else []

    def _missing(self) -> list[str]:
        if any(self.world.held_back.values()):
            return ["publishers still wait for room"]
        agreed = "agreement" in self.promises
        if agreed and self.world.stack.gaps is None:
            return [] if self.world.all_delivered() else ["messages are missing"]
        if not self._whole:  # nothing is published any more: what is whole stays so
            self.world.engine.flush()
            found = self.history.missing if agreed else self.history.silent
            lacking = self._unbegun() or found(self._duty_us)[:SHOWN]
            self._whole = not lacking
            return lacking
        return []

    def _unbegun(self) -> list[str]:
        heads = self.world.stack.gaps is not None
        new = [node for node in self.world.up if heads and not self._gaps_begun(node)]
        return [f"node {node} does not know where its duty begins" for node in new[:SHOWN]]

    def _gaps_begun(self, node: int) -> bool:
        gaps = self.world.nodes[node].gaps
        return gaps is None or gaps.begun

    def _duty_us(self, node: int) -> int:
        """From when on a process is owed everything: where `Gaps` tells holes, from its beginning there."""
        gaps = self.world.nodes[node].gaps
        return self.world.population.joined_us[node] if gaps is None else gaps.begun_us
