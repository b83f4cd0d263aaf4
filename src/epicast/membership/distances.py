"""How far apart two processes are: 0 near, then 1, 2, ... the farther.

Four ways to tell, chosen by a text:

    labels                  by `Env.place`: levels below what two places have in common; `eu/paris` to `eu/rome` is 1
    prefix 24 16            by address: 0 within one /24, 1 within one /16, otherwise 2; `24/64` adds one for IPv6
    rtt 5ms 50ms            by measured round trip: 0 below 5 ms, 1 below 50 ms, otherwise 2
    function module:name    by a function of yours of (id, place, other id, other place)

The first word stands for the kind, so that a setting, a flag and a scenario can all say it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from ipaddress import ip_address, ip_network
from itertools import pairwise
from typing import Any

from epicast.core.config import parse_duration_us
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId

DISTANCE_MAX = 16
FORMS = "labels | prefix 24 16 | rtt 5ms 50ms | function module:name"
UserFunction = Callable[[NodeId, str, NodeId, str], int]
_V6_BITS = {24: 64, 16: 48, 8: 32}  # where only IPv4's are given: a site, a provider's customer, a provider


class Distances(ABC):
    """One way to tell. `measures`: it needs the round trip, which somebody has to measure first."""

    measures = False

    @abstractmethod
    def between(self, me: NodeId, my_place: str, peer: NodeId, place: str, rtt_us: int | None = None) -> int | None:
        """None: not without the round trip."""


class ByLabel(Distances):
    def between(self, me: NodeId, my_place: str, peer: NodeId, place: str, rtt_us: int | None = None) -> int:
        return 0 if my_place == place else _levels_apart(my_place, place)


class ByPrefix(Distances):
    def __init__(self, bits: tuple[tuple[int, int], ...]) -> None:
        self.bits = bits  # for IPv4 and IPv6, the longest first

    def between(self, me: NodeId, my_place: str, peer: NodeId, place: str, rtt_us: int | None = None) -> int:
        return _prefixes_apart(host_of(me), host_of(peer), self.bits)


class ByRoundTrip(Distances):
    measures = True

    def __init__(self, bounds_us: tuple[int, ...]) -> None:
        self.bounds_us = bounds_us

    def between(self, me: NodeId, my_place: str, peer: NodeId, place: str, rtt_us: int | None = None) -> int | None:
        return None if rtt_us is None else bisect_right(self.bounds_us, rtt_us)


class ByFunction(Distances):
    def __init__(self, function: UserFunction) -> None:
        self.function = function

    def between(self, me: NodeId, my_place: str, peer: NodeId, place: str, rtt_us: int | None = None) -> int:
        return max(0, min(DISTANCE_MAX, int(self.function(me, my_place, peer, place))))


@lru_cache(maxsize=65_536)
def _levels_apart(a: str, b: str) -> int:
    mine, theirs = a.split("/") if a else [], b.split("/") if b else []
    common = 0
    while common < min(len(mine), len(theirs)) and mine[common] == theirs[common]:
        common += 1
    return min(DISTANCE_MAX, max(len(mine), len(theirs)) - common)


def host_of(node: NodeId) -> str:
    """Of a live process's id, `host:port/incarnation`."""
    return str(node).partition("/")[0].rpartition(":")[0].strip("[]")


@lru_cache(maxsize=65_536)
def _prefixes_apart(a: str, b: str, bits: tuple[tuple[int, int], ...]) -> int:
    if a == b:
        return 0
    try:
        mine, theirs = ip_address(a), ip_address(b)
    except ValueError:
        return len(bits)  # names say nothing about the network
    if mine.version != theirs.version:
        return len(bits)
    for at, (v4, v6) in enumerate(bits):
        if theirs in ip_network(f"{mine}/{v4 if mine.version == 4 else v6}", strict=False):
            return at
    return len(bits)


@lru_cache(maxsize=64)
def parse_distances(text: str) -> Distances:
    words = text.split()
    kind, values = (words[0], words[1:]) if words else ("", [])
    if kind == "labels" and not values:
        return ByLabel()
    if kind == "prefix" and 1 <= len(values) <= DISTANCE_MAX:
        return ByPrefix(_growing_down([_bits(word, text) for word in values], text))
    if kind == "rtt" and 1 <= len(values) <= DISTANCE_MAX:
        return ByRoundTrip(_bounds(values, text))
    if kind == "function" and len(values) == 1:
        return ByFunction(_function(values[0]))
    raise ConfigError(f"distances: expected one of: {FORMS}; got {text!r}")


def _bits(word: str, text: str) -> tuple[int, int]:
    v4, slash, v6 = word.partition("/")
    if v4.isdigit() and int(v4) <= 32 and (not slash or (v6.isdigit() and int(v6) <= 128)):
        return int(v4), int(v6) if slash else _V6_BITS.get(int(v4), min(128, 2 * int(v4)))
    raise ConfigError(f"distances: expected prefix lengths like 24 or 24/64, got {word!r} in {text!r}")


def _growing_down(bits: list[tuple[int, int]], text: str) -> tuple[tuple[int, int], ...]:
    if any(later >= earlier for earlier, later in pairwise(bits)):
        raise ConfigError(f"distances: expected ever shorter prefixes, got {text!r}")
    return tuple(bits)


def _bounds(words: list[str], text: str) -> tuple[int, ...]:
    bounds = [parse_duration_us(word) for word in words]
    known = [each for each in bounds if each]
    if len(known) < len(bounds) or known != sorted(set(known)):
        raise ConfigError(f"distances: expected growing round trips like 5ms 50ms, got {text!r}")
    return tuple(known)


def _function(name: str) -> UserFunction:
    module, colon, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"distances: cannot use {name!r}: {error}") from None
    if not callable(found):
        raise ConfigError(f"distances: expected a function as module:name, got {name!r}")
    function: UserFunction = found
    return function
