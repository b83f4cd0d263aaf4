"""Long distances on one machine: what goes to another area is held back for a while before it is written.

A wrapper around a connection's transport, put there after the greeting. Order and flow control stay as they are: what
is held back counts as not written yet, and beyond a bound the connection is told to wait. The way back is as long at
the other end, so a round trip takes twice the time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

HELD_HIGH_BYTES, HELD_LOW_BYTES = 4 << 20, 1 << 20


class DelayedTransport:
    def __init__(self, loop: asyncio.AbstractEventLoop, transport: Any, protocol: Any, delay_s: float) -> None:
        self._loop, self._transport, self._protocol, self._delay_s = loop, transport, protocol, delay_s
        self._held: deque[tuple[float, bytes | None]] = deque()  # when each is due; None: the end of what is sent
        self._held_bytes = 0
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes | memoryview) -> None:
        self._hold(bytes(data))  # whoever gave it may use it again
        if self._held_bytes > HELD_HIGH_BYTES and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        self._hold(None)

    def _hold(self, data: bytes | None) -> None:
        self._held.append((self._loop.time() + self._delay_s, data))
        self._held_bytes += len(data or b"")
        if self._timer is None:
            self._timer = self._loop.call_later(self._delay_s, self._release)

    def _release(self) -> None:
        self._timer = None
        now, transport = self._loop.time(), self._transport
        while self._held and self._held[0][0] <= now:
            _, data = self._held.popleft()
            if transport.is_closing():
                continue
            if data is None:
                transport.write_eof()
            else:
                self._held_bytes -= len(data)
                transport.write(data)
        if self._held and not transport.is_closing():
            self._timer = self._loop.call_at(self._held[0][0], self._release)
        if self._paused and self._held_bytes < HELD_LOW_BYTES and not transport.is_closing():
            self._paused = False
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        waiting: int = self._transport.get_write_buffer_size()
        return waiting + self._held_bytes

    def close(self) -> None:
        """After what is held back."""
        self._loop.call_later(self._delay_s, self._transport.close)

    def abort(self) -> None:
        self._held.clear()
        self._held_bytes = 0
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
