"""How long messages took to a subscriber, in little room: what each process of a local cluster counts for its summary.

Latencies are counted in steps of 2 %, so those of many processes add up, and quantiles are right to 2 %. The clocks of
one machine agree to some microseconds, which is why this is for local clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import log
from typing import Any

from epicast.live.messages import Gap, Message
from epicast.live.node import Node

STEP = log(1.02)


class Heard:
    """What the subscribers of one process or of several got."""

    def __init__(self) -> None:
        self.messages = self.lost = 0
        self._counts: Counter[int] = Counter()  # by step
        self._max_us = 0

    def add(self, latency_us: int) -> None:
        self.messages += 1
        self._counts[round(log(max(1, latency_us)) / STEP)] += 1
        self._max_us = max(self._max_us, latency_us)

    def join(self, told: Mapping[str, Any]) -> None:
        """Add what another process told."""
        self.messages += told["messages"]
        self.lost += told["lost"]
        self._max_us = max(self._max_us, told["max_us"])
        self._counts.update({int(step): count for step, count in told["steps"].items()})

    def as_dict(self) -> dict[str, Any]:
        steps = {str(step): count for step, count in sorted(self._counts.items())}
        return {"messages": self.messages, "lost": self.lost, "max_us": self._max_us, "steps": steps}

    def quantile_ms(self, share: float) -> float | None:
        """None if nothing was heard."""
        left = share * self._counts.total()
        for step, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return float(min(1.02**step, self._max_us) / 1e3)
        return None

    @property
    def latency_ms(self) -> dict[str, float] | None:
        if not self._counts:
            return None
        found = {name: self.quantile_ms(share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}
        return {name: round(value or 0.0, 3) for name, value in found.items()} | {"max": round(self._max_us / 1e3, 3)}


async def listen(node: Node, heard: Heard) -> None:
    """Counts what comes on any topic, until it is cancelled. A process's own messages do not count."""
    async with node.subscribe("**") as messages:
        async for batch in messages.batches():
            now_us = node.unix_us()
            for item in batch:
                if isinstance(item, Message):
                    if item.source != node.id:
                        heard.add(max(0, now_us - item.published_us))
                elif isinstance(item, Gap):
                    heard.lost += item.lost
