"""Where to find the first process to talk to: addresses, names that are looked up each time, and files of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, parse_address

SEEDS_MAX = 1024
DEFAULT_PORT = 7946


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

    async def addresses(self, loop: asyncio.AbstractEventLoop) -> list[Address]:
        """As of now. What cannot be read or resolved is left out: it may be there the next time."""
        found: dict[Address, None] = {}
        for entry in self._listed()[:SEEDS_MAX]:
            address = parse_address(entry, default_port=DEFAULT_PORT)
            for resolved in await _resolve(loop, address):
                found[resolved] = None
        return list(found)[:SEEDS_MAX]

    def _listed(self) -> list[str]:
        lines: list[str] = []
        for entry in self._entries:
            lines += _lines_of(Path(entry[1:])) if entry.startswith("@") else [entry]
        return lines


def _lines_of(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    return [line for line in lines if line and _is_address(line)]


def _is_address(text: str) -> bool:
    try:
        parse_address(text, default_port=DEFAULT_PORT)
    except EpicastError:
        return False
    return True


async def _resolve(loop: asyncio.AbstractEventLoop, address: Address) -> list[Address]:
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [Address(str(entry[4][0]), int(entry[4][1])) for entry in found]
