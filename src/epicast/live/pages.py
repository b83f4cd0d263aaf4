"""Reading the admin pages of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, address_of, parse_address
from epicast.live.running import run

TIMEOUT_S = 5.0
ANSWER_BYTES_MAX = 1 << 24
NODES_MAX = 500  # that are asked
TOGETHER = 32  # at a time


def admin_address(text: str) -> Address:
    return parse_address(text.removeprefix("http://").rstrip("/"))


def admin_addresses(entries: Sequence[str]) -> list[Address]:
    """Of `--admin`: addresses, or `@file` with one a line, which is read anew each time."""
    found: dict[Address, None] = {}
    for entry in entries:
        lines = _lines_of(Path(entry[1:])) if entry.startswith("@") else [entry]
        found.update((admin_address(line), None) for line in lines)
    if not found:
        raise EpicastError("--admin: there is no address in the file: give the admin address of a node")
    return list(found)[:NODES_MAX]


def _lines_of(file: Path) -> list[str]:
    try:
        lines = [line.split("#", 1)[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise EpicastError(f"--admin @{file}: {getattr(error, 'strerror', None) or 'it is no text'}") from None
    return [line for line in lines if line]


def fetch_statuses(entries: Sequence[str], port: int | None = None) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """What the nodes tell, and why others do not, by admin address. With a port, the processes that they know are asked
    too, at this port of their hosts. Raises if nobody answers."""
    asked = admin_addresses(entries)
    told, silent = run(_get_statuses(asked))
    if port is not None:
        more = [Address(host, port) for host in _hosts(told) if Address(host, port) not in asked]
        told_too, silent_too = run(_get_statuses(more[: NODES_MAX - len(asked)]))
        told, silent = told + told_too, silent | silent_too
    if not told:
        raise EpicastError(next(iter(silent.values())))
    return told, silent


def _hosts(told: Sequence[dict[str, Any]]) -> list[str]:
    ids = [each["id"] for status in told for each in status["neighbours"]]
    ids += [process for status in told for process in status["known"]]
    addresses = (address_of(process) for process in ids)
    return list(dict.fromkeys(address.host for address in addresses if address is not None))


async def _get_statuses(admins: Sequence[Address]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    seats = asyncio.Semaphore(TOGETHER)

    async def one(admin: Address) -> dict[str, Any] | str:
        async with seats:
            try:
                return await get_status(admin)
            except EpicastError as error:
                return str(error)

    answers = list(zip(admins, await asyncio.gather(*map(one, admins)), strict=True))
    return (
        [answer for _, answer in answers if isinstance(answer, dict)],
        {str(admin): answer for admin, answer in answers if isinstance(answer, str)},
    )


def fetch_status(admin: str) -> dict[str, Any]:
    """For code that is not a coroutine."""
    return run(get_status(admin_address(admin)))


async def get_status(admin: Address, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    code, body = await get(admin, "/status", timeout_s)
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        found = {}
    if code != 200 or "neighbours" not in found or "counters" not in found:
        raise EpicastError(f"{admin} is not the admin address of a node; `epicast node` prints it when it starts")
    return found


async def get(admin: Address, path: str, timeout_s: float = TIMEOUT_S) -> tuple[int, bytes]:
    """Code and body. Raises if nobody answers."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _get(admin, path)
    except TimeoutError:
        raise EpicastError(f"{admin} does not answer within {timeout_s:g} s") from None
    except OSError as error:
        why = error.strerror or "the connection failed"
        raise EpicastError(f"{admin}: {why}; is the node running, and is this its admin address?") from None


async def _get(admin: Address, path: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(admin.host, admin.port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n".encode())
        parts, size = [], 0
        while size <= ANSWER_BYTES_MAX and (chunk := await reader.read(1 << 16)):
            parts.append(chunk)
            size += len(chunk)
    finally:
        writer.transport.abort()
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise EpicastError(f"{admin} does not speak HTTP: give the admin address of a node")
    return int(words[1]), body
