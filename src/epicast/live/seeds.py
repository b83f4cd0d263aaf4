"""Where to find the first process to talk to: addresses, names that are looked up each time, and files of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, parse_address

SEEDS_MAX = 1024
DEFAULT_PORT = 7946
LOOKUP_S = 1.0
_PASSING = (socket.EAI_AGAIN, socket.EAI_FAIL)


class Lookup(NamedTuple):
    """What an entry stands for just now."""

    entry: str
    address: Address | None  # as it is written; None for a file that gives none
    found: tuple[Address, ...] = ()
    why: str = ""  # nothing was found
    temporary: bool = False  # the name server could not say


class Seeds:
    """Entries are `host:port`, a name with several addresses, or `@file` with one entry a line."""

    def __init__(self, entries: Sequence[str]) -> None:
        fits = isinstance(entries, Iterable) and not isinstance(entries, str | bytes | Mapping)
        self._entries = list(entries) if fits else []
        if not fits or not all(isinstance(entry, str) for entry in self._entries):
            raise EpicastError(f'seeds: expected a list like ["127.0.0.1:7946"], got {entries!r}'[:200])
        for entry in self._entries:
            if not entry.startswith("@"):
                parse_address(entry, default_port=DEFAULT_PORT)
        self._pending: dict[str, asyncio.Task[Lookup]] = {}  # of slow name servers; at most one of each entry

    def __bool__(self) -> bool:
        return bool(self._entries)

    async def lookups(self, loop: asyncio.AbstractEventLoop) -> list[Lookup]:
        """As of now, of the first 1,024 entries. What cannot be read or resolved says why; it may be there the next
        time. A name that takes long holds up no other."""
        listed = self._listed()[:SEEDS_MAX]
        names = dict.fromkeys(entry for entry in listed if isinstance(entry, str))
        self._pending = {name: self._pending.get(name) or loop.create_task(_looked_up(loop, name)) for name in names}
        if names:
            await asyncio.wait(self._pending.values(), timeout=LOOKUP_S)
        found = [entry if isinstance(entry, Lookup) else _result(entry, self._pending[entry]) for entry in listed]
        self._pending = {name: task for name, task in self._pending.items() if not task.done()}
        return found

    def _listed(self) -> list[str | Lookup]:
        lines: list[str | Lookup] = []
        for entry in self._entries:
            lines += _lines_of(entry) if entry.startswith("@") else [entry]
        return lines


def _result(entry: str, task: asyncio.Task[Lookup]) -> Lookup:
    if task.done():
        return task.result()
    return Lookup(entry, parse_address(entry, default_port=DEFAULT_PORT), (), "it is still being looked up", True)


async def _looked_up(loop: asyncio.AbstractEventLoop, entry: str) -> Lookup:
    address = parse_address(entry, default_port=DEFAULT_PORT)
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Lookup(entry, address, (), error.strerror or "no such name", error.errno in _PASSING)
    except (OSError, UnicodeError) as error:
        return Lookup(entry, address, (), str(error))
    addresses = dict.fromkeys(Address(str(each[4][0]), int(each[4][1])) for each in found)
    return Lookup(entry, address, tuple(addresses)[:SEEDS_MAX])


def _lines_of(entry: str) -> list[str | Lookup]:
    try:
        text = Path(entry[1:]).read_text(encoding="utf-8")
    except OSError as error:
        return [Lookup(entry, None, (), error.strerror or str(error))]
    except ValueError:
        return [Lookup(entry, None, (), "it is not a text in UTF-8")]
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    return [line for line in lines if line and _is_address(line)] or [Lookup(entry, None, (), "it holds no address")]


def _is_address(text: str) -> bool:
    try:
        parse_address(text, default_port=DEFAULT_PORT)
    except EpicastError:
        return False
    return True
