"""One connection: bytes in, frames out, and a bounded queue of what waits to be written.

What is sent in one turn of the loop goes out in one write. A connection is *busy* while more waits for it than the high
mark. Nothing is awaited, and no task belongs to it.

Its calls never raise: a connection that fails concerns no other. Some transports are closed without `connection_lost`
(uvloop: a dial that is cancelled in the turn in which it succeeds), and raise at every call from then on. So the end of
a connection is told to the hub once: by the loop, by the dial that gave up, or `GONE_S` after it was cut.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

from epicast.core.errors import WireError
from epicast.live.allowance import Allowance
from epicast.live.effort import Effort
from epicast.live.far_links import DelayedTransport
from epicast.live.ids import Address
from epicast.live.pace import Pace
from epicast.live.reasons import CLOSED, said
from epicast.live.same_machine import HERE, remote_of
from epicast.wire.readers import FrameReader

if TYPE_CHECKING:
    from epicast.live.config import Limits
    from epicast.live.hub import Hub
    from epicast.live.sending import Link

LINGER_S = 2.0
"""How long a side that has said all may wait for the other to finish."""
GONE_S = 0.3
"""A connection that was cut has ended by then, whatever the loop tells."""
_WRITE_HIGH_BYTES = 1 << 18
_SEND_PART = 4  # of what is received
COPY_BYTES = 2048  # on average; smaller frames are put together before they are written


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_cut",
        "_flushing",
        "_out",
        "_out_bytes",
        "_paused_by",
        "_reader",
        "_timer",
        "_writable",
        "allowance",
        "closing",
        "dialled",
        "effort",
        "ended",
        "far",
        "fed_bytes",
        "hub",
        "known",
        "link",
        "pace",
        "peer",
        "reason",
        "received_bytes",
        "remote",
        "resting",
        "sent_bytes",
        "sent_heads",
        "since_us",
        "target",
        "todo",
        "transport",
        "used_us",
        "valid_until_s",
    )

    def __init__(self, hub: Hub, *, dialled: bool) -> None:
        self.hub, self.dialled = hub, dialled
        self.target: str | Address = ""  # whom we dialled: a process, or whoever listens at an address
        self.link: Link | None = None  # for which we dialled, if for any
        self.since_us = 0  # when the greeting was over
        self.peer = ""  # the id of the process at the other end, once it has greeted
        self.remote = ""  # its address, as the system tells
        self.transport: Any = None
        self.closing = False
        self.ended = False
        self.reason = ""  # why it ended
        self.todo: list[Any] = []  # frames that wait for their turn
        self.known: Any = None  # what the peer told of streams
        self.sent_heads: dict[int, tuple[Any, int]] = {}  # what we told it: path and hops, by stream
        self.sent_bytes = self.received_bytes = 0
        self.fed_bytes = 0  # of events that we were to send to it
        self.far = False  # in another area
        self.used_us = 0
        self.valid_until_s = inf  # Unix time: its certificate is good for so long
        self.pace = Pace()
        self.allowance = Allowance()
        self.effort = Effort()
        self.resting = False  # it has had its turn
        self._reader = FrameReader(hub.limits.handshake_bytes, greeting=True)
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0
        self._flushing = False
        self._cut = False
        self._writable = True
        self._paused_by: dict[Any, None] = {}  # those that must drain before we read on
        self._timer: asyncio.TimerHandle | None = None

    # From the loop

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self.ended:  # the dial gave up
            transport.abort()
            return
        try:
            # Well below the mark at which others begin to wait: whoever is not told to go on has nothing to wait for.
            transport.set_write_buffer_limits(high=min(_WRITE_HIGH_BYTES, self.hub.high_bytes // 4))
            self.remote = remote_of(transport.get_extra_info("peername"))
            _keep_buffers_small(transport, self.remote, self.hub.limits.local_socket_bytes)
        except (RuntimeError, OSError) as error:
            self._broke(error)
        self.hub.connected(self)

    def get_buffer(self, sizehint: int) -> Any:
        return self._reader.room()

    def buffer_updated(self, count: int) -> None:
        self.received_bytes += count
        try:
            frames = self._reader.filled(count)
            if frames:
                greeted = bool(self.peer)
                self.hub.received(self, frames)
                if not greeted and self.peer:
                    self._go_on()
        except WireError as error:
            self.hub.nonsense(self, str(error))

    def _go_on(self) -> None:
        """With what came together with the greeting."""
        frames = self._reader.go_on(self.hub.limits.frame_bytes)
        if frames:
            self.hub.received(self, frames)

    def eof_received(self) -> bool:
        self.reason = self.reason or CLOSED
        self._flush()
        self.deadline(LINGER_S, self.reason)
        return False  # the transport closes itself, once the peer has taken what waits

    def connection_lost(self, error: Exception | None) -> None:
        self.end(said(error) if error is not None else CLOSED)

    def end(self, reason: str) -> None:
        """It is gone. The hub hears of it once."""
        if self.ended:
            return
        self.closing = self.ended = True
        self.no_deadline()
        self._paused_by.clear()
        self.reason = self.reason or reason
        self._abort()
        self.hub.lost(self)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._flush()
        self.hub.drained(self)

    # Reading

    def greeted(self, peer: str, known: Any, limits: Limits, *, far: bool) -> None:
        self.peer, self.known, self.far = peer, known, far
        if far and limits.far_delay_us:
            self.transport = DelayedTransport(self.hub.loop, self.transport, self, limits.far_delay_us / 1e6)

    def wait_for(self, other: Any) -> None:
        """Read no more until the other has drained: it cannot take what comes from here."""
        if other is self or self.closing:
            return
        if not self._paused_by:
            self._try("pause_reading")
        self._paused_by[other] = None

    def no_longer_wait_for(self, other: Any) -> None:
        if other in self._paused_by:
            del self._paused_by[other]
            if not self._paused_by and not self.closing:
                self._try("resume_reading")

    # Writing

    def send(self, frame: bytes | memoryview) -> None:
        if self.hub.batch is not None:
            self.hub.end_batch()  # which came first
        self._out.append(frame)
        self._out_bytes += len(frame)
        if not self._flushing:
            self._flushing = True
            self.hub.flush_later(self)
        if self._out_bytes > self.hub.high_bytes:
            self._flush()  # whoever sends so much may not let the loop turn
            if not self._writable:
                self.hub.busy(self)

    @property
    def paused(self) -> bool:
        """Does it wait for others before it reads on?"""
        return bool(self._paused_by)

    @property
    def frames_waiting(self) -> int:
        return len(self._out)

    @property
    def waiting_bytes(self) -> int:
        """Not with the operating system yet."""
        waiting: int = self._out_bytes
        if self.transport is not None and not self.closing:
            waiting += self.transport.get_write_buffer_size()
        return waiting

    @property
    def taken_bytes(self) -> int:
        """With the operating system by now."""
        taken: int = self.sent_bytes - self.transport.get_write_buffer_size()
        return taken

    def flush(self) -> None:
        """What was sent since the last time, in one write."""
        self._flushing = False
        self._flush()

    def _flush(self) -> None:
        if not self._writable or not self._out or self.closing:
            return
        out, size = self._out, self._out_bytes
        self._out, self._out_bytes = [], 0
        self.sent_bytes += size
        try:
            if len(out) == 1:
                self.transport.write(out[0])
            elif size > len(out) * COPY_BYTES:
                for each in out:  # few and large: not worth a copy; `writelines` of Python 3.12 forgets to hold us back
                    self.transport.write(each)
            else:
                self.transport.write(b"".join(out))
        except Exception as error:
            self._broke(error)

    # Ending

    def finish(self) -> None:
        """Say goodbye after what was sent; the other side may still finish what it was sending."""
        if self.closing:
            return
        self._writable = True
        self._flush()
        if self.closing:
            return
        self.closing = True
        self.no_deadline()
        self.deadline(LINGER_S, CLOSED)
        try:
            if self.transport.can_write_eof():
                self.transport.write_eof()
            else:
                self.transport.close()
        except Exception as error:
            self._broke(error)

    def cut(self, reason: str) -> None:
        """End it now; what waits is lost."""
        self.reason = self.reason or reason
        self.closing = True
        if not self.ended and not self._cut:
            self._cut = True
            self._abort()
            self.no_deadline()
            self._timer = self.hub.loop.call_later(GONE_S, self.end, self.reason)

    def _abort(self) -> None:
        if self.transport is not None:
            with suppress(Exception):
                self.transport.abort()

    def _try(self, call: str) -> None:
        try:
            getattr(self.transport, call)()
        except Exception as error:
            self._broke(error)

    def _broke(self, error: Exception) -> None:
        """The transport takes no more calls."""
        self.cut(f"broken: {said(error)}")

    def deadline(self, seconds: float, reason: str) -> None:
        if self._timer is None:
            self._timer = self.hub.loop.call_later(seconds, self.cut, reason)

    def no_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _keep_buffers_small(transport: Any, remote: str, size: int) -> None:
    """What waits in the system's buffers delays keep-alives and hides that a peer is slow. On one machine nothing is
    gained by megabytes of it; over long distances it is, and there the system decides.

    With TCP what the receiver's buffer has no room for costs the system two to three times as much as what it has, so
    little may wait for that: where both were as large, a quarter fewer messages of 10 KB got through. A Unix socket has
    one buffer, the sender's."""
    if remote == HERE:
        sizes = {socket.SO_SNDBUF: size}
    elif Address(remote, 0).loopback:
        sizes = {socket.SO_SNDBUF: size // _SEND_PART, socket.SO_RCVBUF: size}
    else:
        return
    link = transport.get_extra_info("socket")
    for option, of_size in sizes.items():
        with suppress(OSError, AttributeError):
            link.setsockopt(socket.SOL_SOCKET, option, of_size)
