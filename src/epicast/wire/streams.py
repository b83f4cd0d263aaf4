"""What the events of a stream have in common, told once for each link.

An event's message has fields that are the same for all events of a stream all along the way (its type, flow, publisher,
topic, flags), fields that every process on the way sets anew (`path`, `hops`), and the event itself (`seq`, `payload`).
The number of a stream is a hash of the first sort, so it is the same on every link. `Head` tells a link what a number
stands for, and is told again when `path` or `hops` change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, ClassVar

import msgspec

from epicast.core.errors import WireError
from epicast.core.message import HOPS_MAX, Message
from epicast.wire.codec import Decoder, encode

STREAMS_MAX = 4096  # known on one link; both ends forget the one that was told first
HEADS_BYTES_MAX = 1 << 24  # of their heads, as they came; so much takes 4096 streams with paths of a hundred processes
_OF_EVENT = ("seq", "payload")
_OF_PLACE = ("hops", "path")


class Head(Message, tag=30):
    """From now on this number stands for events like `like`, a whole message without its event."""

    layer: ClassVar[str] = "wire"
    stream: int
    like: msgspec.Raw


def carries_event(kind: type[Message]) -> bool:
    return {"seq", "payload", "hops", "source", "topic"} <= set(kind.__struct_fields__)


class Shape:
    """How messages of one type are taken apart and put together again."""

    def __init__(self, kind: type[Message]) -> None:
        fields = kind.__struct_fields__
        self.kind = kind
        self.has_path = "path" in fields
        self._fields = fields
        self._seq_at, self._payload_at = fields.index("seq"), fields.index("payload")
        self._common = attrgetter(*[name for name in fields if name not in (*_OF_EVENT, *_OF_PLACE)])
        self._known: dict[tuple[Any, ...], int] = {}  # numbers by what they are made of

    def stream_of(self, msg: Any) -> int:
        key = self._common(msg)
        number = self._known.get(key)
        if number is None:
            if len(self._known) >= STREAMS_MAX:
                self._known.clear()
            digest = blake2b(encode([self.kind.__struct_config__.tag, *key]), digest_size=8).digest()
            number = self._known[key] = int.from_bytes(digest, "big")
        return number

    def with_event(self, like: Any, seq: int, payload: bytes) -> Any:
        values = [getattr(like, name) for name in self._fields]
        values[self._seq_at], values[self._payload_at] = seq, payload
        return self.kind(*values)

    def events(self, like: Any, seq: int, payloads: Sequence[bytes]) -> Iterator[Any]:
        """The messages of a run."""
        values = [getattr(like, name) for name in self._fields]
        seq_at, payload_at, kind = self._seq_at, self._payload_at, self.kind
        for number, payload in enumerate(payloads, seq):
            values[seq_at], values[payload_at] = number, payload
            yield kind(*values)

    def head(self, msg: Any, stream: int) -> Head:
        return Head(stream, msgspec.Raw(encode(self.blank(msg))))

    def blank(self, msg: Any) -> Any:
        # Whoever has come too far stays where it is: others would not bear one more.
        return msgspec.structs.replace(msg, seq=0, payload=b"", hops=min(msg.hops, HOPS_MAX))


class Shapes:
    """Of all types of a stack that carry events."""

    def __init__(self, kinds: list[type[Message]]) -> None:
        self._shapes = {kind: Shape(kind) for kind in kinds if carries_event(kind)}
        self.get = self._shapes.get


class Known:
    """What a peer has told about streams on one link."""

    __slots__ = ("_bytes", "_decoder", "_shapes", "_sizes", "heads", "untried")

    def __init__(self, decoder: Decoder, shapes: Shapes) -> None:
        self._decoder, self._shapes = decoder, shapes
        self.heads: dict[int, Any] = {}  # a message without its event, by stream
        self.untried: dict[int, None] = {}  # new streams of which no event has come yet
        self._sizes: dict[int, int] = {}
        self._bytes = 0

    def learn(self, head: Head) -> Any:
        """Gives what its events are like."""
        like = self._decoder.decode(bytes(head.like))
        shape = self._shapes.get(type(like))
        if shape is None:
            raise WireError(f"{type(like).__name__} carries no event")
        if shape.stream_of(like) != head.stream:
            raise WireError("a stream under a wrong number")
        if head.stream not in self.heads and len(self.heads) >= STREAMS_MAX:
            first = next(iter(self.heads))  # as the sender does
            del self.heads[first]
            self._bytes -= self._sizes.pop(first)
            self.untried.pop(first, None)
        if head.stream not in self.heads:
            self.untried[head.stream] = None
        size = len(head.like)
        self._bytes += size - self._sizes.get(head.stream, 0)
        if self._bytes > HEADS_BYTES_MAX:
            raise WireError("too much to remember of streams")
        self.heads[head.stream], self._sizes[head.stream] = like, size
        return like

    def find(self, stream: int) -> Any:
        like = self.heads.get(stream)
        if like is None:
            raise WireError("an event of an unknown stream")
        return like
