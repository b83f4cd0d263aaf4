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

    def __bool__(self) -> bool:
        return bool(self._entries)

    async def lookups(self, loop: asyncio.AbstractEventLoop) -> list[Lookup]:
        """As of now, of the first 1,024 entries. What cannot be read or resolved says why; it may be there the next
        time."""
        listed = self._listed()[:SEEDS_MAX]
        return await asyncio.gather(*(_looked_up(loop, entry) for entry in listed))

    def _listed(self) -> list[str | Lookup]:
        lines: list[str | Lookup] = []
        for entry in self._entries:
            lines += _lines_of(entry) if entry.startswith("@") else [entry]
        return lines


async def _looked_up(loop: asyncio.AbstractEventLoop, entry: str | Lookup) -> Lookup:
    if isinstance(entry, Lookup):
        return entry
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
