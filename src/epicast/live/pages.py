"""Reading the admin pages of a node."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from epicast.core.errors import EpicastError
from epicast.live.ids import Address, parse_address
from epicast.live.running import run

TIMEOUT_S = 5.0
ANSWER_BYTES_MAX = 1 << 24


def admin_address(text: str) -> Address:
    return parse_address(text.removeprefix("http://").rstrip("/"))


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
