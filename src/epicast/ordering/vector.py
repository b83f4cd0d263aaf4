"""Vector clocks, of which a message carries only what has changed (Singhal and Kshemkalyani 1992; Birman et al. 1991).

A clock has an entry for each publisher: the number of the last of its messages that was delivered, or came before one
that was. The messages of one publisher are delivered in order, so a receiver has its previous clock: a message brings
the entries that have grown since then, each as a place in a table and by how much. A publisher that comes up for the
first time is told by name, and takes the next place in the table. Only what has grown need be waited for; the rest was,
with the message before.

A clock tells about all predecessors, not only the direct ones. So nothing that is given up can hide another
predecessor, as with barriers. The price is that each message is needed to read the next (E-VC-7): who meets a publisher
in mid-stream, or loses one of its messages, cannot read it any more. It says so once, as a gap, and delivers nothing of
that publisher from then on. That is why vectors are for groups that do not change, over a dissemination that loses
nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated

import msgspec

from epicast.core.env import Env
from epicast.core.errors import EpicastError, WireError
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import Count
from epicast.core.ordered import Ordered
from epicast.core.roles import Deliver
from epicast.ordering import trailer
from epicast.ordering.predecessors import CausalConfig, Named, Predecessors
from epicast.ordering.waiting import Stream, Turn

NUMBER_MAX = (1 << 63) - 1
NO_TURN = NUMBER_MAX + 1  # above all numbers: nothing of this publisher has its turn any more

_ENTRIES = msgspec.Meta(max_length=trailer.HEADER_BYTES_MAX)


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    number: Count  # among its publisher's messages
    grown: Annotated[tuple[Count, ...], _ENTRIES]  # place in the table, growth, place, growth ...
    sources: Annotated[tuple[NodeId, ...], _ENTRIES]  # new in the table
    numbers: Annotated[tuple[Count, ...], _ENTRIES]  # and their entries


class Encoded(Named):
    """Its names cannot be read before its turn."""

    __slots__ = ("header", "is_read")

    header: Header

    def __init__(self, event: Ordered, sender: NodeId, number: int, size: int, now_us: int) -> None:
        super().__init__(event, sender, number, size, now_us)
        self.is_read = False


class Table:
    """A publisher's clock after its last message."""

    __slots__ = ("names", "numbers")

    def __init__(self) -> None:
        self.names: list[NodeId] = []
        self.numbers: list[int] = []


_decoder = msgspec.msgpack.Decoder(Header)
_encode = msgspec.msgpack.Encoder().encode


class Vector(Predecessors[Encoded]):
    __slots__ = ("clock", "grown", "places", "tables", "told")

    def __init__(self, env: Env, config: CausalConfig, deliver: Deliver) -> None:
        super().__init__(env, config, deliver)
        self.clock: dict[NodeId, int] = {}  # the last number of each publisher that comes before our next one
        self.grown: dict[NodeId, None] = {}  # entries that have, since our last message
        self.places: dict[NodeId, int] = {}  # in the table that our messages tell of
        self.told: dict[NodeId, int] = {}  # what they have told
        self.tables: dict[NodeId, Table] = {}  # of the other publishers

    # Publishing

    def header(self) -> bytes:
        clock, places, told = self.clock, self.places, self.told
        grown = [(places[name], clock[name] - told[name]) for name in self.grown if name in places]
        new = {name: clock[name] for name in self.grown if name not in places}
        flat = tuple([number for entry in grown for number in entry])
        header = bytes([trailer.CAUSAL]) + _encode(Header(self.own.next, flat, tuple(new), tuple(new.values())))
        if len(header) > trailer.HEADER_BYTES_MAX:
            raise EpicastError(f"a clock with {len(self.grown)} new entries does not fit: use barriers for such groups")
        return header

    def published(self, held: Encoded) -> None:
        for name in self.grown:
            self.places.setdefault(name, len(self.places))
            self.told[name] = self.clock[name]
        self.grown.clear()

    # Receiving

    def read(self, event: Ordered, sender: NodeId, header: bytes, size: int) -> Encoded:
        try:
            said = _decoder.decode(memoryview(header)[1:])
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
            raise WireError("not a clock") from None
        if len(said.grown) % 2 or len(said.sources) != len(said.numbers):
            raise WireError("not a clock")
        held = Encoded(event, sender, said.number, size, self.env.now_us())
        held.header = said
        return held

    def meet(self, key: Hashable, held: Encoded, topic: str) -> Stream[Encoded] | None:
        if len(self.streams) >= self.causal.vector_max:
            self.nonsense(held, "too many publishers")
            return None
        return super().meet(key, held, topic)

    def forgettable(self, stream: Stream[Encoded]) -> bool:
        return False  # it could not be read when it is met again

    def judge(self, held: Encoded) -> Turn:
        if not held.is_read:
            try:
                held.names = self._names(held.event.source, held.header)
            except WireError as error:
                self.nonsense(held, str(error))
                self.silence(held.stream, held)
                return Turn.NEVER
            held.is_read = True
        return super().judge(held)

    def _names(self, source: NodeId, header: Header) -> tuple[MsgId, ...]:
        """What must have been delivered before, besides the publisher's own. Changes its table."""
        table = self.tables.setdefault(source, Table())
        names, numbers = table.names, table.numbers
        if len(names) + len(header.sources) > self.causal.vector_max:
            raise WireError("a clock with too many entries")
        found: list[MsgId] = []
        flat = iter(header.grown)
        for place, growth in zip(flat, flat, strict=True):
            if place >= len(names) or numbers[place] + growth > NUMBER_MAX:
                raise WireError("a clock with an entry that cannot be")
            numbers[place] += growth
            found.append((names[place], numbers[place]))
        names += header.sources
        numbers += header.numbers
        found += zip(header.sources, header.numbers, strict=True)
        self.check_names(source, tuple(found))
        return tuple(found)

    def released(self, held: Encoded) -> None:
        super().released(held)
        for name, number in (*held.names, (held.event.source, held.number)):
            if number > self.clock.get(name, -1) and name != self.env.me:
                self.clock[name] = (
                    number  # what it names may have been given up here; it comes before ours all the same
                )
                self.grown[name] = None

    # Publishers that cannot be read

    def begin(self, stream: Stream[Encoded], number: int) -> None:
        if number:
            self.silence(stream)
        else:
            super().begin(stream, number)

    def silence(self, stream: Stream[Encoded], held: Encoded | None = None) -> None:
        """`held` has its turn and is not in the room."""
        numbers = [*stream.ahead] if held is None else [*stream.ahead, held.number]
        lost = max(numbers) + 1 - stream.next if numbers and stream.settled else max(1, len(numbers))
        following = stream.ahead[min(stream.ahead)] if held is None and numbers else held
        self.gap(stream, f"{lost} lost and all that follow: a clock cannot be read without those before it", following)
        super().begin(stream, NO_TURN)
        stream.first = 0  # whatever comes is lost, as was said
        self.tables.pop(stream.source, None)

    def end_wait(self, held: Encoded) -> None:
        while held in self.waiting:
            stream = self._culprit(held)
            if stream is not None:
                self.silence(stream)
            self.run()

    def _culprit(self, held: Encoded) -> Stream[Encoded] | None:
        """Of which publisher something lacks, on which all the others wait; None: it was a name that nobody knows."""
        stream, seen = held.stream, {held.stream}
        while stream.settled and stream.next in stream.ahead:
            first = stream.ahead[stream.next]
            assert first.awaits is not None
            name, number = first.awaits
            other = self.streams.get(name)
            if other is None:
                self.miss(name, number)
                self.ready.append(first)
                return None
            if other in seen:  # they wait for each other: somebody lied
                return stream
            stream = other
            seen.add(stream)
        return stream
