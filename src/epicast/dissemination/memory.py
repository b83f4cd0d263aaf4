"""Which events were dealt with lately: two tables that take turns, so that forgetting costs nothing.

An event is remembered for one to two times `MEMORY_US`. A copy may wait for a round and travel on each of its TTL
links, so that the last one may come seconds after the first; later hardly ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import filterfalse

MEMORY_US = 10_000_000  # our guess: a dozen links of most of a second each
KEYS_MAX = 1 << 18  # of one table: a full one is turned over earlier


class Memory:
    __slots__ = ("_new", "_old", "_since_us")

    def __init__(self, now_us: int) -> None:
        self._new: dict[bytes, None] = {}
        self._old: dict[bytes, None] = {}
        self._since_us = now_us

    def __contains__(self, key: bytes) -> bool:
        return key in self._new or key in self._old

    def add(self, key: bytes) -> None:
        self._new[key] = None

    def unknown(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those among them that are not remembered. Of most keys there are many copies: this goes over them fast."""
        return sorted(filterfalse(self._old.__contains__, filterfalse(self._new.__contains__, keys)))

    def turn(self, now_us: int) -> None:
        """Called now and then."""
        if now_us - self._since_us >= MEMORY_US or len(self._new) > KEYS_MAX:
            self._old, self._new, self._since_us = self._new, {}, now_us
