"""The order of EpTO (document 000, algorithm 5): an event is delivered once nothing can come before it any more.

Every event grows older by one with each round, and as old as the oldest copy of it that comes. Old enough, it is
*stable*: whatever belongs before it has come, with high probability. Stable events are delivered in the order of their
keys, up to the first that is not stable. What comes after its turn is dropped, or handed over as a correction: a hole,
never an inversion.

Errata obeyed: an unknown event is added (E-E1); only what belongs behind the last delivered event is taken, and only
what belongs before all that is not stable is given out, both by whole keys (E-E4, E-E5, E-E10).

Here an event does not grow older: its birth is noted, in rounds of ours. What is to be given out is found at the top of
a heap.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Annotated, Literal

import msgspec

from epicast.core.config import Config
from epicast.core.env import Env
from epicast.core.ids import NOBODY, NodeId
from epicast.core.ordered import Ordered
from epicast.core.records import Kind
from epicast.core.roles import Deliver
from epicast.dissemination.ball_keys import read_key
from epicast.dissemination.ball_messages import Entry
from epicast.dissemination.memory import Memory
from epicast.dissemination.seen import Seen

FIRST = b""  # before all keys
OVERDUE_EVERY = 8  # rounds: looking for what is overdue takes long where much waits

Size = Annotated[int, msgspec.Meta(ge=1)]
Level = dict[bytes, Entry]


class EptoConfig(Config):
    scope: Literal["topic", "all"] = "topic"  # one order for each topic, or one for all together
    late: Literal["drop", "correct"] = "drop"  # what comes after its turn is lost, or handed over as a correction
    pending_max: Size = 65_536  # our guess; from half of it on publishers wait, above, events of others are dropped
    pending_bytes_max: Size = 1 << 26  # our guess; of payloads, likewise
    topics_max: Size = 4_096  # our guess; at the cap the order of a topic without pending events is forgotten
    sources_max: Size = 65_536  # our guess; at the cap the numbers of the publisher that was met first are forgotten


class Pending:
    """An event that waits for its turn."""

    __slots__ = ("hops", "key", "payload", "taken", "topic")

    def __init__(self, key: bytes, hops: int, topic: str, payload: bytes | None) -> None:
        self.key, self.hops, self.topic = key, hops, topic
        self.payload = payload  # None: it has not come yet
        self.taken = False  # by the application, before its turn

    def event(self) -> Ordered:
        _, source, seq = read_key(self.key)
        assert self.payload is not None
        return Ordered(source, seq, self.topic, self.hops, self.payload)


class Line:
    """The events of one order that wait, and the last one that was delivered."""

    __slots__ = ("heap", "last")

    def __init__(self, last: bytes) -> None:
        self.heap: list[bytes] = []
        self.last = last


class StableOrder:
    __slots__ = (
        "_bare",
        "_floor",
        "_keys_alone",
        "accepted",
        "births",
        "bytes",
        "config",
        "deliver",
        "env",
        "late",
        "lines",
        "pending",
        "seen",
        "sights",
    )

    def __init__(self, env: Env, config: EptoConfig, deliver: Deliver) -> None:
        self.env, self.config, self.deliver = env, config, deliver
        self.pending: dict[bytes, Pending] = {}
        self.births: dict[bytes, int] = {}  # in which round each of them was born; a table of its own, which is faster
        self.lines: dict[str, Line] = {}
        self.late = 0  # events that came after their turn
        self.accepted = 0
        self.bytes = 0  # of the payloads that wait
        self.sights: dict[int, int] = {}  # how many events were how old when they came
        self._keys_alone = 0  # pending events whose payload has not come
        self._floor = FIRST  # the last event of the orders that were forgotten
        self._bare = Memory(env.now_us())  # keys given up before their payload came: they may be forged
        self.seen = Seen(config.sources_max, config.pending_max)  # delivered or given up
        self.seen.held = self._held

    def _held(self, source: NodeId) -> list[int]:
        """The numbers of this source that wait."""
        keys = (read_key(key) for key in self.pending)
        return [seq for _, publisher, seq in keys if publisher == source]

    def has_room(self) -> bool:
        config = self.config
        count = len(self.pending) - self._keys_alone  # anybody can make up keys
        return count < config.pending_max // 2 and self.bytes < config.pending_bytes_max // 2

    # Events

    def take_level(self, ttl: int, birth: int, level: Level, *, payloads: bool) -> None:
        """Events of a ball that have so many rounds behind them. Most have come before, in other balls."""
        births, fresh = self.births, []
        for key, known in zip(level, map(births.get, level), strict=True):
            if known is None:
                fresh.append(key)
            elif birth < known:
                births[key] = birth
        for key in sorted(fresh):
            topic, payload = level[key]
            self.take(key, birth, ttl, topic, payload if payloads else None)

    def take(self, key: bytes, birth: int, hops: int, topic: str, payload: bytes | None) -> None:
        """An event came, for the first time or again. `birth` is the round in which it would have been born."""
        known = self.pending.get(key)
        if known is not None:
            birth = self.births[key] = min(birth, self.births[key])
            if known.payload is not None or payload is None:
                return
            if topic == known.topic:
                if self._fits(key, topic, payload):
                    known.payload = payload
                    self._keys_alone -= 1
                return
            self._withdraw(known)  # the payload knows better where it belongs than whoever passed its key on
        _, source, seq = read_key(key)
        if self.seen.holds(source, seq) or key in self._bare:
            return
        line = self._line(topic)
        if key <= line.last:
            self._take_late(Pending(key, hops, topic, payload))
        elif payload is None and self._keys_alone >= self.config.pending_max // 2:
            self.env.record(Kind.NONSENSE, source=source, seq=seq, topic=topic, detail="too many keys without payloads")
        elif len(self.pending) >= self.config.pending_max:
            self._give_up(key, topic, "above pending_max", bare=payload is None)
        elif self._fits(key, topic, payload or b""):
            self.accepted += 1
            self.sights[hops] = self.sights.get(hops, 0) + 1
            self.pending[key] = Pending(key, hops, topic, payload)
            self._keys_alone += payload is None
            self.births[key] = birth
            heappush(line.heap, key)

    def _withdraw(self, event: Pending) -> None:
        self._keys_alone -= 1
        del self.pending[event.key], self.births[event.key]
        heap = self._line(event.topic).heap
        heap.remove(event.key)
        heapify(heap)

    def _fits(self, key: bytes, topic: str, payload: bytes) -> bool:
        if self.bytes + len(payload) > self.config.pending_bytes_max:
            self._give_up(key, topic, "above pending_bytes_max")
            return False
        self.bytes += len(payload)
        return True

    def _give_up(self, key: bytes, topic: str, why: str, *, bare: bool = False) -> None:
        """Once: what comes of it later is old news. `bare`: its payload has not come, so that anyone may have made it
        up; the number may still be used."""
        _, source, seq = read_key(key)
        if bare:
            self._bare.add(key)
        if not self.seen.holds(source, seq) if bare else self.seen.add(source, seq):
            self.env.record(Kind.GAP, source=source, seq=seq, topic=topic, detail=f"1 {why}")

    def refuse(self, source: NodeId, seq: int, topic: str, why: str) -> None:
        """It came and cannot be put in order: a hole that is told."""
        if self.seen.add(source, seq):
            self.env.record(Kind.GAP, source=source, seq=seq, topic=topic, detail=f"1 {why}")

    def _take_late(self, late: Pending) -> None:
        self.late += 1
        if self.config.late == "correct" and late.payload is not None:
            event = late.event()
            if self.seen.add(event.source, event.seq):
                self.env.correct(event)
            return
        self._give_up(late.key, late.topic, "late", bare=late.payload is None)

    def release(self, born_before: int, patience: int = 0) -> None:
        """Deliver what was born before that round, and has nothing younger in front of it. Whatever lacks its payload
        holds up what is behind it, and is given up when it is so many rounds older."""
        self._bare.turn(self.env.now_us())
        for line in [line for line in self.lines.values() if line.heap]:
            heap = line.heap
            upto = self._overdue(heap, born_before, patience)
            while heap and (self.births[heap[0]] < born_before or heap[0] <= upto):
                event = self.pending[heap[0]]
                if event.payload is None and self.births[heap[0]] >= born_before - patience and heap[0] > upto:
                    break
                line.last = heappop(heap)
                del self.pending[line.last], self.births[line.last]
                self._give(event)

    def _overdue(self, heap: list[bytes], born_before: int, patience: int) -> bytes:
        """The last event that was held up for too long, by others in front of it that came later and later. That is
        what happens where a member makes them up: it is not waited for without end."""
        if not patience or born_before % OVERDUE_EVERY:
            return FIRST
        births, pending, since = self.births, self.pending, born_before - 2 * patience
        return max([key for key in heap if births[key] < since and pending[key].payload is not None], default=FIRST)

    def _give(self, event: Pending) -> None:
        if event.payload is None:
            self._keys_alone -= 1
            self._give_up(event.key, event.topic, "without its payload", bare=True)
            return
        self.bytes -= len(event.payload)
        _, source, seq = read_key(event.key)
        self.seen.add(source, seq)
        if event.taken:
            self.env.record(Kind.DELIVER, NOBODY, source, seq, event.hops, event.topic)
        else:
            self.deliver(event.event(), NOBODY)

    # Before their turn

    def waiting(self, topic: str | None = None) -> Iterator[Pending]:
        """In order within each line."""
        for line in self.lines.values():
            for key in sorted(line.heap):
                event = self.pending[key]
                if event.payload is not None and not event.taken and topic in (None, event.topic):
                    yield event

    def take_early(self, key: bytes) -> Ordered | None:
        """The application has it now, and will not get it again when its turn comes."""
        event = self.pending.get(key)
        if event is None or event.taken or event.payload is None:
            return None
        event.taken = True
        _, source, seq = read_key(key)
        self.env.record(Kind.EARLY, NOBODY, source, seq, event.hops, event.topic)
        return event.event()

    # Lines

    def _line(self, topic: str) -> Line:
        name = topic if self.config.scope == "topic" else ""
        line = self.lines.get(name)
        if line is None:
            if len(self.lines) >= self.config.topics_max:
                self._forget_a_line()
            line = self.lines[name] = Line(self._floor)
        return line

    def _forget_a_line(self) -> None:
        """What belongs before its last event must never be delivered: the lines made from now on begin behind it."""
        idle = next((name for name, line in self.lines.items() if not line.heap), None)
        if idle is not None:
            self._floor = max(self._floor, self.lines.pop(idle).last)
