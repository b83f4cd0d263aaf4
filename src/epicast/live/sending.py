"""The hub, part 1: messages on their way out, over links that are up or will be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Any

from epicast.core.message import Message
from epicast.live.connection import Connection
from epicast.wire.codec import Decoder, frame, size
from epicast.wire.frames import Run, event_frame
from epicast.wire.streams import STREAMS_MAX, Shape, Shapes

WAITING_MAX = 4096  # messages for a process that is not connected yet; the oldest go first


def sort_of(reason: str) -> str:
    """Without what only one case, or a peer, has to say: counters must not grow with it."""
    return reason.partition(":")[0]


class Tally:
    """Where one message went."""

    __slots__ = ("dropped", "sent", "waiting")

    def __init__(self) -> None:
        self.sent = self.waiting = 0
        self.dropped: list[tuple[str, str]] = []  # peer and reason


class Link:
    __slots__ = ("conn", "dialling", "held", "peer", "waiting")

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.conn: Connection | None = None
        self.dialling = False
        self.held = False
        self.waiting: list[Message] = []  # until it is up


class Sending(ABC):
    decoder: Decoder
    shapes: Shapes

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self.counters: Counter[str] = Counter()
        self.tally: Tally | None = None  # of the message that is being published

    @abstractmethod
    def reach(self, peer: str) -> Link | None:
        """A new link that is being dialled; None if that is pointless."""

    @abstractmethod
    def dropped(self, peer: str, msg: Message, reason: str) -> None:
        """Told of every message that goes nowhere."""

    def send(self, peer: str, msg: Message) -> int:
        """Returns how many bytes it takes on the wire."""
        link = self.links.get(peer) or self.reach(peer)
        if link is None:
            self._drop(peer, msg, "unreachable")
            return size(msg)
        if link.conn is None:
            self._wait(link, msg)
            return size(msg)
        if self.tally is not None:
            self.tally.sent += 1
        return self._transmit(link.conn, msg)

    def send_same(self, peers: Iterable[Any], msg: Message) -> int:
        """To many: encoded once."""
        shape = self.shapes.get(type(msg))
        event: Any = msg
        if shape is None:
            stream, data = 0, frame(msg)
        else:
            stream = shape.stream_of(event)
            data = event_frame(stream, event.seq, event.payload)
        links, sent = self.links, 0
        for peer in peers:
            link = links.get(peer)
            conn = None if link is None else link.conn
            if conn is None:
                self.send(peer, msg)
                continue
            sent += 1
            if shape is not None:
                told = conn.sent_heads.get(stream)
                if told is None or told[1] != event.hops or (shape.has_path and told[0] is not event.path):
                    self._tell_head(conn, shape, stream, event)
            conn.send(data)
        if self.tally is not None:
            self.tally.sent += sent
        return len(data)

    def send_run(self, peers: Iterable[Any], like: Any, run: Run) -> None:
        """Hand on what was received, as it came. `like` is a message of the run as we would send it."""
        shape = self.shapes.get(type(like))
        assert shape is not None
        stream, raw = run.stream, run.raw
        for peer in peers:
            link = self.links.get(peer)
            conn = None if link is None else link.conn
            if conn is None:
                for number, payload in enumerate(run):
                    self.send(peer, shape.with_event(like, run.seq + number, payload))
                continue
            told = conn.sent_heads.get(stream)
            if told is None or told[1] != like.hops or (shape.has_path and told[0] is not like.path):
                self._tell_head(conn, shape, stream, like)
            conn.send(raw)

    def _transmit(self, conn: Connection, msg: Message) -> int:
        shape = self.shapes.get(type(msg))
        if shape is None:
            data = frame(msg)
        else:
            event: Any = msg
            stream = shape.stream_of(event)
            told = conn.sent_heads.get(stream)
            if told is None or told[1] != event.hops or (shape.has_path and told[0] is not event.path):
                self._tell_head(conn, shape, stream, event)
            data = event_frame(stream, event.seq, event.payload)
        conn.send(data)
        return len(data)

    def _tell_head(self, conn: Connection, shape: Shape, stream: int, event: Any) -> None:
        path = event.path if shape.has_path else None
        told = conn.sent_heads.get(stream)
        if told is not None and told[1] == event.hops and told[0] == path:
            conn.sent_heads[stream] = (path, event.hops)  # the same in another object
            return
        if told is None and len(conn.sent_heads) >= STREAMS_MAX:
            del conn.sent_heads[next(iter(conn.sent_heads))]  # as the receiver does
        conn.sent_heads[stream] = (path, event.hops)
        conn.send(frame(shape.head(event, stream)))

    def _wait(self, link: Link, msg: Message) -> None:
        link.waiting.append(msg)
        if self.tally is not None:
            self.tally.waiting += 1
        if len(link.waiting) > WAITING_MAX:
            self._drop(link.peer, link.waiting.pop(0), "queue full")

    def _drop(self, peer: str, msg: Message, reason: str) -> None:
        self.counters[f"dropped: {sort_of(reason)}"] += 1
        if self.tally is not None:
            self.tally.dropped.append((peer, reason))
        self.dropped(peer, msg, reason)
