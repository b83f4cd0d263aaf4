"""Which events were dealt with lately: two tables that take turns, so that forgetting costs nothing.

An event is remembered for one to two times `MEMORY_US`. A copy may wait for a round and travel on each of its TTL
links, so that the last one may come seconds after the first; later hardly ever.
"""

from __future__ import annotations

MEMORY_US = 10_000_000  # our guess: a dozen links of most of a second each
KEYS_MAX = 1 << 18  # of one table: a full one is turned over earlier


class Memory:
    """`new` and `old` are there for those who compare whole tables."""

    __slots__ = ("_since_us", "new", "old")

    def __init__(self, now_us: int) -> None:
        self.new: dict[bytes, None] = {}
        self.old: dict[bytes, None] = {}
        self._since_us = now_us

    def __contains__(self, key: bytes) -> bool:
        return key in self.new or key in self.old

    def add(self, key: bytes) -> None:
        self.new[key] = None

    def turn(self, now_us: int) -> None:
        """Called now and then."""
        if now_us - self._since_us >= MEMORY_US or len(self.new) > KEYS_MAX:
            self.old, self.new, self._since_us = self.new, {}, now_us
