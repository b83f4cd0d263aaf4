"""Causal barriers (Prakash et al. 1996; document 004, section 2.2.3): a message names its direct predecessors alone.

What a process has delivered since its last publication, and what none of that names, is its *barrier*; of one publisher
only the latest, since that follows the others. The next message carries it, and becomes the whole barrier itself.

Barriers are short because they say nothing about predecessors of predecessors. Where all that a message names is
delivered, that is as good. It is not where something was given up or came before our beginning (E-PS-16):

    m1 <- m2 <- m3: m3 names m2 alone. Who lacks m2 and delivers m3 does not know that m1 must not follow.

So a message also carries a *stamp* (Lamport): higher than that of all messages which its publisher has heard of. One
that stands on something we do not have is *shaky*. It is held for `settle_us`, and until nothing waits that might come
before it. Once it is delivered, what has a stamp below its own and nothing in its favour is too late, since it might be
such an m1:

- what names anything delivered since then cannot be;
- what was published before its publisher had heard of anything is let pass, or the first messages of newcomers would
  be lost wherever something was lost before.

When a wait ends in vain, all that waits with a lower stamp goes first, in the order of stamps.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Annotated

import msgspec

from epicast.core.env import Env
from epicast.core.errors import EpicastError, WireError
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import Count
from epicast.core.ordered import Ordered
from epicast.core.roles import Deliver
from epicast.dissemination.seen import STREAM_BITS
from epicast.ordering import trailer
from epicast.ordering.predecessors import CausalConfig, Named, Predecessors
from epicast.ordering.ranked import Ranked
from epicast.ordering.standing import Place
from epicast.ordering.waiting import Stream, Turn

STAMP_MAX = (1 << 63) - 1
NAME_BYTES_MAX = 512  # an id of 120 letters of four bytes each, its length and a number
REST_BYTES_MAX = 32  # of a header, besides names

_NAMES = msgspec.Meta(max_length=trailer.HEADER_BYTES_MAX // 2)


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=0):
    number: Count  # among its publisher's messages
    lead: Count  # of the stamp before the number; 0: its publisher has heard of nothing
    sources: Annotated[tuple[NodeId, ...], _NAMES]
    numbers: Annotated[tuple[Count, ...], _NAMES]


class Stamped(Named):
    __slots__ = ("fenced", "informed", "stamp")

    stamp: int
    informed: bool  # its publisher had heard of something

    def __init__(self, event: Ordered, sender: NodeId, number: int, size: int, now_us: int) -> None:
        super().__init__(event, sender, number, size, now_us)
        self.fenced = False  # it waits for those with lower stamps


_decoder = msgspec.msgpack.Decoder(Header)
_encode = msgspec.msgpack.Encoder().encode


class Barrier(Predecessors[Stamped]):
    __slots__ = (
        "_fence",
        "_fresh",
        "_full_until_us",
        "_lasts",
        "_stamps",
        "barrier",
        "floor",
        "heard",
        "stamp",
        "veil",
    )

    def __init__(self, env: Env, config: CausalConfig, deliver: Deliver) -> None:
        super().__init__(env, config, deliver)
        self.barrier: dict[NodeId, tuple[int, int]] = {}  # number, and when it was delivered: the oldest first
        self._full_until_us = 0  # there are too many to keep
        self.stamp = 0  # the highest that we have heard of
        self.heard = False  # of anything
        self.floor = 0  # what is below might precede something that we lack
        self.veil = 0  # what is below and from before our beginning might precede something that was delivered
        # The last message of each source's streams below: its number there, when it came, when it was delivered
        self._lasts: dict[tuple[NodeId, int], tuple[int, int, int]] = {}
        self._fresh: dict[NodeId, int] = {}  # the first number of each source since the floor was raised
        self._stamps: Ranked[Stamped] = Ranked(self.waiting)  # all that wait, by their stamps
        self._fence: Ranked[Stamped] = Ranked(self.waiting)  # shaky ones that wait for nothing but lower stamps

    # Publishing

    def has_room(self) -> bool:
        self._leave_out_old()
        count = len(self.barrier) - (self.env.me in self.barrier)
        if count > self.causal.barrier_max or self.env.now_us() < self._full_until_us:
            return False
        # Only names of unusual length can be too long together.
        sure = count * NAME_BYTES_MAX + REST_BYTES_MAX <= trailer.HEADER_BYTES_MAX
        return sure or len(self._encoded()) <= trailer.HEADER_BYTES_MAX

    def header(self) -> bytes:
        if not self.has_room():
            raise EpicastError("too many messages to name: raise barrier_max, or wait for room")
        return self._encoded()

    def _encoded(self) -> bytes:
        others = {source: number for source, (number, _) in self.barrier.items() if source != self.env.me}
        number = self.own.next
        lead = min(self.stamp + 1, STAMP_MAX) - number if self.heard else 0
        header = Header(number, lead, tuple(others), tuple(others.values()))
        return bytes([trailer.CAUSAL]) + _encode(header)

    def _leave_out_old(self) -> None:
        """Whoever lacks them still has given them up by now. If there are too many of the others, we cannot publish
        until those that do not fit are old too."""
        stable_us = self.causal.stable_us
        now_us = self.env.now_us()
        while self.barrier:
            source, (_, delivered_us) = next(iter(self.barrier.items()))
            if delivered_us + stable_us > now_us:
                if len(self.barrier) <= self.config.streams_max:
                    return
                self._full_until_us = delivered_us + stable_us
            del self.barrier[source]

    def published(self, held: Stamped) -> None:
        self.stamp = max(self.stamp, held.stamp)
        self.barrier = {self.env.me: (held.number, self.env.now_us())}
        self._note_last(held)

    # Receiving

    def take(self, key: Hashable, held: Stamped, topic: str = "") -> None:
        stream = self.streams.get(key)
        if (stream is None or not stream.settled) and self._is_past(held, self.veil):
            return
        super().take(key, held, topic)

    def _is_past(self, held: Stamped, stamp: int) -> bool:
        """It is from before our beginning, and may come before something that was delivered here since."""
        return held.stamp < stamp and self.is_before(held.event.source, held.number)

    def read(self, event: Ordered, sender: NodeId, header: bytes, size: int) -> Stamped:
        try:
            said = _decoder.decode(memoryview(header)[1:])
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
            raise WireError("not a barrier") from None
        stamp = said.number + max(said.lead, 1)
        if len(said.sources) != len(said.numbers) or stamp > STAMP_MAX:
            raise WireError("not a barrier")
        if len(said.sources) > self.causal.barrier_max:
            raise WireError("a barrier with too many names")
        held = Stamped(event, sender, said.number, size, self.env.now_us())
        held.names = tuple(zip(said.sources, said.numbers, strict=True))
        held.stamp, held.informed = stamp, said.lead > 0
        self.check_names(event.source, held.names)
        if sender != self.env.me:
            self.heard = True
            self.stamp = max(self.stamp, stamp)
        return held

    def judge(self, held: Stamped) -> Turn:
        turn = super().judge(held)
        if turn is not Turn.NOW:
            return turn
        if self._is_too_low(held):
            self.pass_over(held)
            return Turn.NEVER
        if self._is_past(held, self.veil - 1):  # as with the floor: m1 < m2 < m3
            self.remove(held)
            self._jump(held.stream, held.number + 1)
            return Turn.NEVER
        if 0 < held.number == held.stream.sound:
            self.lacks(held, held.event.source, held.number - 1)
        if held.shaky and not self.held_long_enough(held):
            return Turn.LATER
        if (held.shaky or held.veiled) and not self._is_lowest(held):
            return Turn.LATER
        return Turn.NOW

    def released(self, held: Stamped) -> None:
        super().released(held)
        source, number = held.event.source, held.number
        if held.shaky:
            self.floor = max(self.floor, held.stamp - 1)  # m1 < m2 < m3
            self._fresh.clear()
        elif held.veiled:
            self.veil = max(self.veil, held.stamp)
        if self.floor:
            self._fresh.setdefault(source, number)
        barrier = self.barrier
        for name, named in held.names:
            if name in barrier and barrier[name][0] <= named:
                del barrier[name]
        barrier.pop(source, None)
        barrier[source] = (number, self.env.now_us())
        self._leave_out_old()
        self._note_last(held)

    def _is_fresh(self, held: Stamped) -> bool:
        """Does it follow something that was delivered since the floor was raised?"""
        fresh = self._fresh
        own = (held.event.source, held.number - 1)
        return any(name in fresh and fresh[name] <= number for name, number in (own, *held.names))

    def _is_too_low(self, held: Stamped) -> bool:
        return held.stamp < self.floor and held.informed and not self._is_fresh(held)

    # What newcomers ask

    def _note_last(self, held: Stamped) -> None:
        lasts, source, seq = self._lasts, held.event.source, held.event.seq
        key = source, seq >> STREAM_BITS
        before = lasts.pop(key, None)
        came_us = held.since_us if before is None else max(held.since_us, before[1])
        lasts[key] = seq, came_us, self.env.now_us()
        if len(lasts) > self.config.streams_max:
            del lasts[next(iter(lasts))]

    def places(self, *, own_only: bool) -> Iterator[Place]:
        yield self.env.me, "", self.own.next
        if not own_only:
            for stream in reversed(self.streams.values()):
                if stream.settled:
                    yield stream.source, "", stream.next

    def recent(self, since_us: int) -> list[MsgId]:
        found: list[MsgId] = []
        for (source, _), (seq, came_us, delivered_us) in reversed(self._lasts.items()):
            if delivered_us < since_us:
                break
            if came_us >= since_us:
                found.append((source, seq))
        return found

    def forgotten(self, stream: Stream[Stamped]) -> None:
        self._fresh.pop(stream.source, None)

    # Shaky messages: only when nothing waits that might come before them

    def joined(self, held: Stamped) -> None:
        self._stamps.push(held.stamp, held)

    def _is_lowest(self, held: Stamped) -> bool:
        if not self._waits_below(held.stamp):
            return True
        if not held.fenced:
            held.fenced = True
            self._fence.push(held.stamp, held)
        return False

    def _waits_below(self, stamp: int) -> bool:
        """Anything that might come before something that comes before this one?"""
        lowest = self._stamps.first()
        return lowest is not None and lowest[0] < stamp - 1

    def reopen(self) -> bool:
        first = self._fence.first()
        if first is None or self._waits_below(first[0]):
            return False
        self._fence.pop()
        first[1].fenced = False
        self.ready.append(first[1])
        return True

    # Waits that end in vain

    def end_wait(self, held: Stamped) -> None:
        while held in self.waiting:
            lowest = self._stamps.first()
            assert lowest is not None
            self._go_without(lowest[1] if lowest[0] < held.stamp else held)

    def _go_without(self, held: Stamped) -> None:
        """What it waits for is not here: whatever is, and comes before it, has a lower stamp and has gone already."""
        self._stop_waiting(held)
        for name, number in held.names[held.at :]:
            stream = self.streams.get(name)
            if name == self.env.me or (stream is None and self.is_before(name, number)):
                continue
            if stream is None:
                self.miss(name, number)
            elif not stream.settled:
                self.begin_in_mid_stream(stream, max(number + 1, min(stream.ahead)))
            elif number >= stream.next:
                self.skip(stream, number + 1)
        stream = held.stream
        if not stream.settled:
            self.begin_in_mid_stream(stream, held.number)
        elif held.number > stream.next:
            self.skip(stream, held.number)
        held.shaky = True
        if self._is_too_low(held):
            self.pass_over(held)
        else:
            self.release(held)
