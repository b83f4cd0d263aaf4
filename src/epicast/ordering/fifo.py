"""First in, first out: the messages of one publisher on one topic are delivered in the order of their publication.

A header is the number of the message among its publisher's on that topic, from 0 on, in as few bytes as it takes. What
comes early waits (`waiting.py`). A hole that nobody fills within `patience_us` is given up and recorded as a gap. What
comes after that is dropped: a hole, never an inversion.

A publisher that comes back is another one, with streams of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from epicast.core.env import Env
from epicast.core.errors import EpicastError, WireError
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import Event, Message
from epicast.core.ordered import Ordered, OrderName
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Disseminator, Membership
from epicast.ordering import trailer
from epicast.ordering.beginnings import Beginnings
from epicast.ordering.standing import AskStanding, Place, Standing
from epicast.ordering.waiting import Cap, Held, WaitingConfig, WaitingRoom

_FIFO = bytes([trailer.FIFO])
NUMBER_MAX = (1 << 63) - 1
NUMBER_BYTES_MAX = 8


class FifoConfig(WaitingConfig):
    topics_max: Cap = 65_536  # our guess; topics that one process publishes on: a number must never be used again


class Fifo(WaitingRoom[Held]):
    __slots__ = ("numbers", "topics_max")

    handles: ClassVar[tuple[type[Message], ...]] = (AskStanding, Standing)

    beginnings: Beginnings

    def __init__(self, env: Env, config: FifoConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config, deliver)
        self.beginnings = Beginnings(
            env, trailer.FIFO, (config.settle_us, config.patience_us), members, self, cuts=False
        )
        self.topics_max = config.topics_max
        self.numbers: dict[str, int] = {}  # of our next message, by topic

    def order_of(self, pattern: str) -> OrderName:
        return "fifo"

    def attach(self, dissemination: Disseminator) -> None:
        self.beginnings.attach(dissemination)

    def start(self, *, first: bool = False) -> None:
        self.beginnings.start(first=first)

    def tell_beginnings(self, tell: Callable[[NodeId, int], None]) -> None:
        self.beginnings.on_begin = tell

    def settled(self) -> bool:
        return self.beginnings.settled()

    def on_ask_standing(self, sender: NodeId, msg: AskStanding) -> None:
        self.beginnings.on_ask_standing(sender, msg)

    def on_standing(self, sender: NodeId, msg: Standing) -> None:
        self.beginnings.on_standing(sender, msg)

    def has_room(self, topic: str) -> bool:
        return True

    def dress(self, topic: str, payload: bytes) -> bytes:
        if topic not in self.numbers and len(self.numbers) >= self.topics_max:
            raise EpicastError(f"more than {self.topics_max} topics: raise topics_max, or publish on fewer")
        number = self.numbers.get(topic, 0)
        return trailer.add(payload, _FIFO + number.to_bytes((number.bit_length() + 7) // 8, "big"))

    def receive(self, event: Event, sender: NodeId) -> None:
        source, topic = event.source, event.topic
        try:
            payload, number = _undress(event.payload)
            if source == self.env.me != sender:
                raise WireError("our own, from somebody else")
        except WireError as error:
            self.env.record(Kind.NONSENSE, sender, source, event.seq, topic=topic, detail=str(error))
            return
        ordered = Ordered(source, event.seq, topic, event.hops, payload)
        if sender == self.env.me:
            self.numbers[topic] = number + 1
            self.deliver(ordered, sender)
        else:
            held = Held(ordered, sender, number, len(event.payload), self.env.now_us())
            self.take((source, topic), held, topic)

    def places(self, *, own_only: bool) -> Iterator[Place]:
        for topic, number in reversed(self.numbers.items()):
            yield self.env.me, topic, number
        if not own_only:
            for stream in reversed(self.streams.values()):
                if stream.settled:
                    yield stream.source, stream.topic, stream.next

    def recent(self, since_us: int) -> list[MsgId]:
        return []  # nobody asks: streams begin one by one

    def know(self, cut: dict[NodeId, int], reach: dict[NodeId, int] | None) -> None: ...

    def end_wait(self, held: Held) -> None:
        """Everything that lacks before it has been missed for at least as long: whoever came first shows the hole."""
        stream = held.stream
        if not stream.settled:
            self.begin_in_mid_stream(stream, min(stream.ahead))
        while held in self.waiting:
            if stream.next not in stream.ahead:
                self.skip(stream, min(stream.ahead))
            self.release(stream.ahead[stream.next])


def _undress(dressed: bytes) -> tuple[bytes, int]:
    payload, header = trailer.split(dressed)
    number = int.from_bytes(header[1 : 1 + NUMBER_BYTES_MAX], "big")
    if header[0] != trailer.FIFO or len(header) > 1 + NUMBER_BYTES_MAX or number > NUMBER_MAX:
        raise WireError("not a place in a stream")
    return payload, number
