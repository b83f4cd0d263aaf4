"""Who told us of which process, and how many connections that may cost us.

Messages name third parties: shuffles, walks, paths. A member may name addresses of its choice, and each would cost us
a connection, and the process there as well. So a dial is charged:

- to the peer whose message is being handled, if it has named the process;
- else to nobody, if we have reached the process before;
- else to one of the peers that named it, the one that was charged least;
- and if nobody is known to have named it, to all of these cases together.

Whoever was charged `DIALS_MAX` times within a minute has no more dialled on its word. A peer has room for names of its
own, so it pushes out no names of others; what it named is forgotten some time after it fell silent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from epicast.core.ids import NodeId

DIALS_MAX = 64
PERIOD_US = 60_000_000
NAMES_MAX = 512  # of one peer; many times what a view holds, so names that are still in use are not pushed out
TELLERS_MAX = 256
REACHED_MAX = 4096
SILENT_US = 30_000_000  # names of a peer that has told nothing for so long are forgotten

Names = Callable[[Any], Iterable[str]]


class Teller:
    """A peer that told us of others."""

    __slots__ = ("charged_us", "named", "told_us")

    def __init__(self) -> None:
        self.named: dict[str, None] = {}
        self.told_us = 0
        self.charged_us: deque[int] = deque(maxlen=DIALS_MAX)

    def name(self, nodes: Iterable[str], now_us: int) -> None:
        named, self.told_us = self.named, now_us
        for node in nodes:
            if node not in named:
                named[node] = None
                if len(named) > NAMES_MAX:
                    del named[next(iter(named))]

    def charged(self, now_us: int) -> int:
        """How often, within the last minute."""
        while self.charged_us and self.charged_us[0] <= now_us - PERIOD_US:
            self.charged_us.popleft()
        return len(self.charged_us)

    def charge(self, now_us: int) -> bool:
        if self.charged(now_us) >= DIALS_MAX:
            return False
        self.charged_us.append(now_us)
        return True


class Told:
    def __init__(self) -> None:
        self._tellers: dict[str, Teller] = {}
        self._unknown = Teller()
        self._reached: dict[str, None] = {}

    def name(self, teller: str, nodes: Iterable[str], now_us: int) -> None:
        found = self._tellers.get(teller)
        if found is None:
            if len(self._tellers) >= TELLERS_MAX:
                del self._tellers[min(self._tellers, key=lambda each: self._tellers[each].told_us)]
            found = self._tellers[teller] = Teller()
        found.name(nodes, now_us)

    def reached(self, node: str) -> None:
        """We dialled it, and it was there."""
        if node not in self._reached and len(self._reached) >= REACHED_MAX:
            del self._reached[next(iter(self._reached))]
        self._reached[node] = None

    def may_dial(self, node: str, asking: str, now_us: int) -> bool:
        """`asking`: the peer whose message is being handled, if any."""
        tellers = self._tellers
        if asking in tellers and node in tellers[asking].named:
            return tellers[asking].charge(now_us)
        if node in self._reached:
            return True
        named = [each for each in tellers.values() if node in each.named]
        charged = min(named, key=lambda each: each.charged(now_us)) if named else self._unknown
        return charged.charge(now_us)

    def forget(self, now_us: int) -> None:
        """Now and then."""
        for name, teller in list(self._tellers.items()):
            if teller.told_us < now_us - SILENT_US:
                teller.named.clear()
                if not teller.charged(now_us):
                    del self._tellers[name]


def names_in(hint: Any) -> Names | None:
    """What finds the processes that a value of this type names; None: there are none in it."""
    if hint == NodeId:
        return _itself
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return names_in(arguments[0])
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint, include_extras=True)
        found = [(name, each) for name in hint.__struct_fields__ if (each := names_in(hints[name])) is not None]
        return partial(_fields, found) if found else None
    if origin is tuple and arguments[-1] is Ellipsis:
        each = names_in(arguments[0])
        return None if each is None else (_all if each is _itself else partial(_each, each))
    if origin is tuple:
        places = [(at, part) for at, one in enumerate(arguments) if (part := names_in(one)) is not None]
        return partial(_places, places) if places else None
    return None


def _itself(value: Any) -> Iterable[str]:
    return (value,)


def _all(values: Any) -> Iterable[str]:
    return values  # type: ignore[no-any-return]


def _fields(found: list[tuple[str, Names]], value: Any) -> Iterator[str]:
    for name, names in found:
        yield from names(getattr(value, name))


def _each(names: Names, values: Any) -> Iterator[str]:
    for value in values:
        yield from names(value)


def _places(places: list[tuple[int, Names]], values: Any) -> Iterator[str]:
    for at, names in places:
        yield from names(values[at])
