"""The stream of bytes between two processes, cut into frames.

    length (4) | msgpack array ...                                  a message
    length (4) | 0xC1 | stream (8) | number (8) | payload ...       an event of a known stream

Events of one stream differ in number and payload only, so all else is told once for each link (`wire/streams.py`). Both
hold all along a tree, so a process can hand on what it received as it is, many events at a time. 0xC1 begins no msgpack
value.

Nothing is believed before it is checked: a length above the limit ends the stream before anything is stored.

`_frames.pyx` is the same reader compiled; `readers.py` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import overload

from epicast.core.errors import WireError
from epicast.wire.codec import HEADER_BYTES

EVENT = 0xC1
ROOM_BYTES = 1 << 16  # read at once: so much of the smallest frames takes well under 50 ms
_HEAD = Struct(">IBQQ")  # length, 0xC1, stream, number
EVENT_HEAD_BYTES = _HEAD.size
_EVENT_BODY_MIN = EVENT_HEAD_BYTES - HEADER_BYTES


def event_head(stream: int, seq: int, payload: bytes) -> bytes:
    return _HEAD.pack(_EVENT_BODY_MIN + len(payload), EVENT, stream, seq)


def event_frame(stream: int, seq: int, payload: bytes) -> bytes:
    return event_head(stream, seq, payload) + payload


class Run(Sequence[bytes]):
    """Events of one stream with consecutive numbers that came together: their payloads, taken out only when asked for,
    and their frames as they came."""

    __slots__ = ("_data", "_ends", "_starts", "raw", "seq", "stream")

    def __init__(self, stream: int, seq: int, data: bytes, starts: list[int], ends: list[int]) -> None:
        self.stream, self.seq = stream, seq
        self._data, self._starts, self._ends = data, starts, ends  # where the payloads are
        self.raw = memoryview(data)[starts[0] - EVENT_HEAD_BYTES : ends[-1]]

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.payloads())

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        if isinstance(at, slice):
            return self.payloads()[at]
        return self._data[self._starts[at] : self._ends[at]]

    def payloads(self) -> list[bytes]:
        data = self._data
        return [data[start:end] for start, end in zip(self._starts, self._ends, strict=True)]

    def places(self) -> tuple[bytes, list[int], list[int]]:
        """For those who want part of each payload only: the bytes, and where payloads begin and end in them."""
        return self._data, self._starts, self._ends

    @property
    def payload_bytes(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __repr__(self) -> str:
        return f"Run(stream={self.stream}, seq={self.seq}, {len(self)} events)"


OPEN, GREETING, GREETED = range(3)
"""What a reader gives: all frames; the first frame alone; nothing until `go_on`."""


class FrameReader:
    """Takes bytes as they come, gives whole frames: bodies of messages, and runs of events.

    With `greeting` it gives the first frame alone. The frames behind it fall under another limit, so they are not
    looked at before `go_on`; what comes in between is dropped.
    """

    __slots__ = ("_buffer", "_room", "_stage", "_wanted", "limit")

    def __init__(self, limit: int, *, greeting: bool = False) -> None:
        self.limit = limit  # of a body
        self._stage = GREETING if greeting else OPEN
        self._room = bytearray()
        self._buffer = bytearray()  # of a frame that is not whole yet
        self._wanted = 0  # how many bytes must be there before it is worth looking again

    @property
    def waiting(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return len(self._buffer)

    def room(self) -> bytearray:
        """Where to put what comes next."""
        size = min(ROOM_BYTES, HEADER_BYTES + self.limit)  # little before the greeting
        if len(self._room) < size:
            self._room = bytearray(size)
        return self._room

    def filled(self, count: int) -> list[bytes | Run]:
        """So many bytes were put there."""
        return self.feed(bytes(memoryview(self._room)[:count]))

    def go_on(self, limit: int) -> list[bytes | Run]:
        """The frames that came with the first one, under the limit that holds from now on."""
        self._stage, self.limit = OPEN, limit
        rest = bytes(self._buffer)
        self._buffer.clear()
        return self.feed(rest)

    def feed(self, data: bytes) -> list[bytes | Run]:
        if self._stage:
            return self._first(data)
        frames: list[bytes | Run] = []
        at = self._complete(data, frames) if self._buffer else 0
        if at < len(data):
            self._take_all(data, at, frames)
        return frames

    def _first(self, data: bytes) -> list[bytes | Run]:
        if self._stage == GREETED:
            return []
        buffer = self._buffer + data
        end = HEADER_BYTES
        if len(buffer) >= HEADER_BYTES:
            end += self._length(buffer, 0)
        self._buffer = buffer
        if len(buffer) < end or end == HEADER_BYTES:
            return []
        first = bytes(buffer[HEADER_BYTES:end])
        del buffer[:end]
        self._stage = GREETED
        return [first]

    def _complete(self, data: bytes, frames: list[bytes | Run]) -> int:
        """Only the frame that was begun before is put together: copying all that came would cost more than it. Returns
        where the next one begins."""
        at = 0
        while len(self._buffer) < self._wanted:
            missing = self._wanted - len(self._buffer)
            self._buffer += data[at : at + missing]
            at = min(len(data), at + missing)
            if len(self._buffer) < self._wanted:
                return at
            self._wanted = HEADER_BYTES + self._length(self._buffer, 0)
        whole = bytes(self._buffer)
        self._buffer.clear()
        self._take_all(whole, 0, frames)
        return at

    def _take_all(self, data: bytes, at: int, frames: list[bytes | Run]) -> None:
        end = len(data)
        while end - at >= HEADER_BYTES:
            body = at + HEADER_BYTES
            following = body + self._length(data, at)
            if following > end:
                break
            if data[body] == EVENT:
                at = self._take_run(data, at, end, frames)
            else:
                at = following
                frames.append(data[body:at])
        if at < end:
            self._buffer += memoryview(data)[at:]
            short = end - at < HEADER_BYTES
            self._wanted = HEADER_BYTES if short else HEADER_BYTES + self._length(data, at)

    def _length(self, data: bytes | bytearray, at: int) -> int:
        length = int.from_bytes(data[at : at + HEADER_BYTES], "big")
        if length > self.limit or not length:
            raise WireError(f"frame of {length} bytes; expected 1 to {self.limit}")
        return length

    def _take_run(self, data: bytes, at: int, end: int, frames: list[bytes | Run]) -> int:
        """All events of the same stream that follow each other; returns where they end."""
        limit, unpack = self.limit, _HEAD.unpack_from
        if self._length(data, at) < _EVENT_BODY_MIN:
            raise WireError("an event without stream and number")
        stream, expected = unpack(data, at)[2:]
        first = expected
        starts: list[int] = []
        ends: list[int] = []
        last = end - EVENT_HEAD_BYTES
        while at <= last:
            length, mark, its_stream, seq = unpack(data, at)
            following = at + HEADER_BYTES + length
            if seq != expected or following > end or its_stream != stream or mark != EVENT:
                break
            if length > limit or length < _EVENT_BODY_MIN:
                raise WireError(f"frame of {length} bytes; expected {_EVENT_BODY_MIN} to {limit}")
            starts.append(at + EVENT_HEAD_BYTES)
            ends.append(following)
            expected += 1
            at = following
        begin = starts[0] - EVENT_HEAD_BYTES
        if 2 * (at - begin) < end:  # most of it is something else, which is not to be kept with it
            data, shift = data[begin:at], begin
            starts, ends = [start - shift for start in starts], [place - shift for place in ends]
        frames.append(Run(stream, first, data, starts, ends))
        return at
