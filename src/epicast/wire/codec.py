"""Messages to bytes and back, and their exact size.

A frame is a four-byte big-endian length and a msgpack array whose first element is the message's tag. Hostile bytes
raise `WireError` and nothing else; caps on lengths stand in the types of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from epicast.core.errors import WireError
from epicast.core.message import Message

HEADER_BYTES = 4
FRAME_BYTES_MAX = (1 << 24) + (1 << 16)

_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode
"""The body of a frame."""


def size(msg: Message) -> int:
    """Bytes on the wire, header included."""
    return HEADER_BYTES + len(encode(msg))


def frame(msg: Message) -> bytes:
    body = encode(msg)
    if len(body) > FRAME_BYTES_MAX:
        raise WireError(f"message of {len(body)} bytes; the limit is {FRAME_BYTES_MAX}")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


class Decoder:
    """Reads the messages of one stack. Built once: msgspec compiles the union."""

    def __init__(self, kinds: Iterable[type[Message]]) -> None:
        union: Any = reduce(or_, kinds)
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(union)

    def decode(self, body: bytes | memoryview) -> Message:
        if len(body) > FRAME_BYTES_MAX:
            raise WireError(f"frame of {len(body)} bytes; the limit is {FRAME_BYTES_MAX}")
        try:
            return self._decoder.decode(body)
        # msgspec reports bad bytes, bad values, bad UTF-8 and too deep nesting each in its own way.
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, MemoryError) as error:
            raise WireError(f"not a message: {error}") from None

    def unframe(self, data: bytes) -> Message:
        """One whole frame, header included."""
        if len(data) < HEADER_BYTES:
            raise WireError(f"frame header of {len(data)} bytes; expected {HEADER_BYTES}")
        length = int.from_bytes(data[:HEADER_BYTES], "big")
        if length != len(data) - HEADER_BYTES:
            raise WireError(f"frame says {length} bytes and has {len(data) - HEADER_BYTES}")
        return self.decode(memoryview(data)[HEADER_BYTES:])
