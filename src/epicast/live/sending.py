"""The hub, part 1: messages on their way out, over links that are up or will be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from epicast.core.message import Message
from epicast.live.connection import Connection
from epicast.wire.codec import Decoder, frame, size
from epicast.wire.frames import Run, event_frame, event_head
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


class Batch:
    """Events of one stream that go to the same peers in the same turn of the loop: put together once for all."""

    __slots__ = ("conns", "hops", "path", "peers", "pieces", "size", "stream")

    def __init__(self, peers: Any, conns: list[Connection], stream: int, path: Any, hops: int) -> None:
        self.peers, self.conns = peers, conns
        self.stream, self.path, self.hops = stream, path, hops  # which all of these peers know
        self.pieces: list[bytes] = []
        self.size = 0

    def takes(self, peers: Any, stream: int, path: Any, hops: int) -> bool:
        return self.peers is peers and self.stream == stream and self.path is path and self.hops == hops


class Sending(ABC):
    decoder: Decoder
    shapes: Shapes
    high_bytes: int

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self.counters: Counter[str] = Counter()
        self.tally: Tally | None = None  # of the message that is being published
        self.batch: Batch | None = None  # until anything else is sent, or the turn is over
        self._sent_before = [0, 0]  # bytes to the own area and to others, over connections that are gone

    def count_sent(self, conn: Connection) -> None:
        """A connection is gone, but not what went over it."""
        self._sent_before[conn.far] += conn.sent_bytes

    def sent_bytes(self) -> tuple[int, int]:
        """To processes of the own area, and to others."""
        sent = list(self._sent_before)
        for link in self.links.values():
            if link.conn is not None:
                sent[link.conn.far] += link.conn.sent_bytes
        return sent[0], sent[1]

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

    def send_same(self, peers: Sequence[Any], msg: Message) -> int:
        """To many: encoded once."""
        shape = self.shapes.get(type(msg))
        if shape is None:
            data = frame(msg)
            for peer in peers:
                self._send_frame(peer, msg, data)
            return len(data)
        event: Any = msg
        stream, payload = shape.stream_of(event), event.payload
        head = event_head(stream, event.seq, payload)
        batch = self.batch
        if batch is not None and batch.takes(peers, stream, event.path if shape.has_path else None, event.hops):
            batch.pieces += (head, payload)
            batch.size += len(head) + len(payload)
            if batch.size > self.high_bytes:
                self.end_batch()  # whoever sends so much may not let the loop turn
            if self.tally is not None:
                self.tally.sent += len(batch.conns)
            return len(head) + len(payload)
        self._send_event(peers, shape, stream, event, head + payload)
        return len(head) + len(payload)

    def _send_frame(self, peer: Any, msg: Message, data: bytes) -> None:
        link = self.links.get(peer)
        if link is None or link.conn is None:
            self.send(peer, msg)
            return
        link.conn.send(data)
        if self.tally is not None:
            self.tally.sent += 1

    def _send_event(self, peers: Sequence[Any], shape: Shape, stream: int, event: Any, data: bytes) -> None:
        conns: list[Connection] = []
        for peer in peers:
            link = self.links.get(peer)
            conn = None if link is None else link.conn
            if conn is None:
                self.send(peer, event)
                continue
            self._tell_head(conn, shape, stream, event)
            conn.fed_bytes += len(data)
            conn.send(data)
            conns.append(conn)
        if self.tally is not None:
            self.tally.sent += len(conns)
        if len(conns) == len(peers) and type(peers) is tuple:  # more of the same may follow
            self.batch = Batch(peers, conns, stream, event.path if shape.has_path else None, event.hops)

    def end_batch(self) -> None:
        batch, self.batch = self.batch, None
        if batch is not None and batch.pieces:
            data = b"".join(batch.pieces)
            for conn in batch.conns:
                conn.fed_bytes += len(data)
                conn.send(data)

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
            self._tell_head(conn, shape, stream, like)
            conn.fed_bytes += len(raw)
            conn.send(raw)

    def _transmit(self, conn: Connection, msg: Message) -> int:
        shape = self.shapes.get(type(msg))
        if shape is None:
            data = frame(msg)
        else:
            event: Any = msg
            stream = shape.stream_of(event)
            self._tell_head(conn, shape, stream, event)
            data = event_frame(stream, event.seq, event.payload)
            conn.fed_bytes += len(data)
        conn.send(data)
        return len(data)

    def _tell_head(self, conn: Connection, shape: Shape, stream: int, event: Any) -> None:
        """Unless it knows."""
        path = event.path if shape.has_path else None
        told = conn.sent_heads.get(stream)
        if told is not None and told[1] == event.hops and told[0] is path:
            return
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
