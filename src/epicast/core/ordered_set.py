"""A set that remembers insertion order and picks at random in constant time.

Iteration order decides whom a protocol talks to, so it must not depend on hashes: a plain `set` may only answer `in`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Generic, TypeVar

from epicast.core.chance import sample

T = TypeVar("T")


class OrderedSet(Generic[T]):
    """Members in a list, and where each one sits in a dict. Removing moves the last member into the hole."""

    __slots__ = ("_at", "items")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self.items: list[T] = []
        self._at: dict[T, int] = {}
        for item in items:
            self.add(item)

    def __contains__(self, item: object) -> bool:
        return item in self._at

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OrderedSet):
            return self._at.keys() == other._at.keys()
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"OrderedSet({self.items!r})"

    def add(self, item: T) -> bool:
        """True if it was not there yet."""
        if item in self._at:
            return False
        self._at[item] = len(self.items)
        self.items.append(item)
        return True

    def discard(self, item: T) -> bool:
        """True if it was there."""
        hole = self._at.pop(item, None)
        if hole is None:
            return False
        last = self.items.pop()
        if hole < len(self.items):
            self.items[hole] = last
            self._at[last] = hole
        return True

    def replace(self, old: T, new: T) -> None:
        """`new`, which must not be there yet, takes the place of `old`, which must."""
        at = self._at.pop(old)
        assert new not in self._at
        self._at[new] = at
        self.items[at] = new

    def clear(self) -> None:
        self.items.clear()
        self._at.clear()

    def pick(self, rng: Random) -> T:
        """One member, uniformly. The set must not be empty."""
        items = self.items
        return items[int(rng.random() * len(items))]

    def sample(self, rng: Random, count: int) -> list[T]:
        """Up to `count` distinct members, uniformly, in random order."""
        return sample(rng, self.items, count)
