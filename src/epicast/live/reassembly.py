"""Messages that came in pieces, put together again; bounded in bytes and in time."""

from __future__ import annotations

from collections.abc import Callable

from epicast.live.config import PIECE_BYTES
from epicast.live.envelope import Envelope

Lost = Callable[[str, str], None]
"""Is told the source of a message that was given up, and why."""


class _Parts:
    __slots__ = ("bytes", "content", "count", "first_seq", "headers", "parts", "since_us")

    def __init__(self, count: int, since_us: int) -> None:
        self.count, self.since_us = count, since_us
        self.parts: dict[int, bytes] = {}
        self.bytes = 0  # with what its pieces cost besides their content
        self.content = 0
        self.first_seq = 0
        self.headers: dict[str, str] = {}


class Whole:
    __slots__ = ("headers", "payload", "seq")

    def __init__(self, seq: int, payload: bytes, headers: dict[str, str]) -> None:
        self.seq, self.payload, self.headers = seq, payload, headers


class Reassembly:
    def __init__(self, bytes_max: int, message_bytes_max: int, age_max_us: int, lost: Lost) -> None:
        self._bytes_max, self._message_bytes_max, self._age_max_us = bytes_max, message_bytes_max, age_max_us
        self._lost = lost
        self._waiting: dict[tuple[str, int], _Parts] = {}  # by source and group, the oldest first
        self._bytes = 0

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    def add(self, source: str, seq: int, envelope: Envelope, now_us: int) -> Whole | None:
        """The whole message with its last missing piece."""
        assert envelope.fragment is not None
        group, index, count = envelope.fragment
        key = (source, group)
        parts = self._waiting.get(key)
        if parts is None:
            self.expire(now_us)
            parts = self._waiting[key] = _Parts(count, now_us)
        if count != parts.count or index in parts.parts:
            return None
        parts.parts[index] = envelope.payload
        size = PIECE_BYTES + len(envelope.payload) + sum(len(k) + len(v) for k, v in envelope.headers.items())
        parts.bytes += size
        self._bytes += size
        if index == 0:
            parts.first_seq, parts.headers = seq, envelope.headers
        parts.content += len(envelope.payload)
        if parts.content > self._message_bytes_max:
            self._give_up(key, "too large")
        elif len(parts.parts) == count:
            del self._waiting[key]
            self._bytes -= parts.bytes
            return Whole(parts.first_seq, b"".join(parts.parts[at] for at in range(count)), parts.headers)
        else:
            self._make_room()
        return None

    def expire(self, now_us: int) -> None:
        while self._waiting:
            key = next(iter(self._waiting))
            if self._waiting[key].since_us > now_us - self._age_max_us:
                return
            self._give_up(key, "pieces missing")

    def _make_room(self) -> None:
        while self._bytes > self._bytes_max:
            self._give_up(next(iter(self._waiting)), "too many messages in pieces")

    def _give_up(self, key: tuple[str, int], why: str) -> None:
        self._bytes -= self._waiting.pop(key).bytes
        self._lost(key[0], why)
