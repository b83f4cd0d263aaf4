"""The room in which messages wait for their turn, and the end of every wait.

A *stream* is what one publisher numbers from 0. A message has its turn when the one before it was delivered or given
up; an order may ask for more than that (`judge`). Think of tickets with numbers, some of which nobody holds: who waits
for `patience_us` behind such a number is let through, and the trace says what was lost.

    unknown --number 0 comes--> settled
    unknown --any other comes--> met in mid-stream --settle_us later--> settled at the lowest number that came

A process that meets a stream in mid-stream does not know where its duty begins. It holds what comes, delivers from the
lowest number on, and owes nothing from before. What comes from below that afterwards is too late, and reported as a
gap. With `Beginnings` it mostly learns at once where its duty begins, and `settle_us` is for what nobody knows.

Everything is bounded. At a cap the oldest hole is given up at once: in the stream that is full, or in the one of which
something has waited for longest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable
from enum import Enum
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from epicast.core.config import Config, PositiveDuration
from epicast.core.env import Env, Timer
from epicast.core.errors import ConfigError
from epicast.core.ids import NOBODY, NodeId
from epicast.core.ordered import Ordered
from epicast.core.records import Kind
from epicast.core.roles import Deliver
from epicast.ordering.beginnings import Beginnings

_GAP, _NONSENSE = int(Kind.GAP), int(Kind.NONSENSE)

STOOD_STILL_US = 1_000_000  # a timer that is so late shows that we stood still: what came meanwhile is behind it
Cap = Annotated[int, msgspec.Meta(ge=1)]


class WaitingConfig(Config):
    patience_us: PositiveDuration = 30_000_000  # our guess: trees mend themselves in less
    settle_us: PositiveDuration = 3_000_000  # our guess: newcomers have caught up by then
    ahead_max: Cap = 1_024  # our choice, as for the windows of disseminators; messages of one stream that wait
    waiting_max: Cap = 16_384  # our guess; messages that wait
    waiting_bytes_max: Cap = 1 << 26  # our guess; of their payloads
    streams_max: Cap = 65_536  # our guess; at the cap the one silent for longest is forgotten, if nothing waits for it

    def check(self) -> None:
        if self.settle_us > self.patience_us:
            raise ConfigError(
                f"settle_us: expected at most patience_us = {self.patience_us} us, got {self.settle_us} us"
            )


class Held:
    """A message that came."""

    __slots__ = ("event", "number", "sender", "since_us", "size", "stream")

    stream: Stream[Any]

    def __init__(self, event: Ordered, sender: NodeId, number: int, size: int, now_us: int) -> None:
        self.event, self.sender, self.number, self.size, self.since_us = event, sender, number, size, now_us


H = TypeVar("H", bound=Held)


class Stream(Generic[H]):
    """How far one publisher's messages have come."""

    __slots__ = ("ahead", "first", "next", "settled", "sound", "source", "topic", "unsure_us")

    def __init__(self, source: NodeId, topic: str = "", *, settled: bool = True) -> None:
        self.source, self.topic = source, topic
        self.settled = settled  # do we know where our duty begins?
        self.first = 0  # what comes from below has not been reported as lost
        self.sound = 0  # everything from here on, up to `next`, was delivered
        self.next = 0  # whose turn it is
        self.unsure_us = -1  # until when holes may be from before our beginning
        self.ahead: dict[int, H] = {}  # those that wait, in the order in which they came


class Turn(Enum):
    NOW = 0
    LATER = 1
    NEVER = 2  # it has been dropped


class WaitingRoom(ABC, Generic[H]):
    __slots__ = (
        "_due_us",
        "_timer",
        "awake_us",
        "beginnings",
        "bytes",
        "config",
        "deliver",
        "env",
        "late",
        "ready",
        "settling",
        "streams",
        "waiting",
    )

    def __init__(self, env: Env, config: WaitingConfig, deliver: Deliver) -> None:
        self.env, self.config, self.deliver = env, config, deliver
        self.streams: dict[Hashable, Stream[H]] = {}  # the one heard of last comes last
        self.waiting: dict[H, None] = {}  # in the order in which they came
        self.bytes = 0  # of those
        self.settling: dict[Stream[H], int] = {}  # met in mid-stream, and until when we hold what comes
        self.ready: deque[H] = deque()  # whose turn may have come
        self.late = 0  # messages that came after their turn
        self.beginnings: Beginnings | None = None
        self.awake_us = 0  # since when: waits begin anew
        self._timer: Timer | None = None
        self._due_us = 0

    # What an order decides

    def judge(self, held: H) -> Turn:
        """All before it in its stream is done. May it go?"""
        return Turn.NOW

    @abstractmethod
    def end_wait(self, held: H) -> None:
        """It has waited for too long: deliver it, or drop it, whatever it waits for. `run` follows."""

    def released(self, held: H) -> None:
        """It is about to be delivered."""

    def passed(self, stream: Stream[H]) -> None:
        """Whatever waits for a number below `stream.next` need not wait any more."""

    def joined(self, held: H) -> None:
        """It begins to wait."""

    def left(self, held: H) -> None:
        """It does not wait any more."""

    def reopen(self) -> bool:
        """Is there somebody else whose turn has come, now that others have gone? Puts them into `ready`."""
        return False

    def forgettable(self, stream: Stream[H]) -> bool:
        """Nothing of it waits. May it be forgotten?"""
        return True

    def forgotten(self, stream: Stream[H]) -> None:
        """It was."""

    # What comes

    def take(self, key: Hashable, held: H, topic: str = "") -> None:
        """`topic` is that of the whole stream, if it has one."""
        if self._timer is not None:
            self._notice_standstill(self.env.now_us())
        stream = self.streams.pop(key, None) or self.meet(key, held, topic)
        if stream is None:
            return
        self.streams[key] = held.stream = stream
        number = held.number
        if number == 0 and not stream.settled and self._begins_with(stream):
            self.begin(stream, 0)
        if stream.settled and number < stream.next:
            self._too_late(held)
        elif number in stream.ahead:
            self.nonsense(held, "a number twice")
        elif number != stream.next or not stream.settled or not self._try(held):
            self._hold(held)
            if not stream.settled and self.beginnings is not None:
                self._seek_beginning(stream, self.beginnings)
        if self.waiting:
            self.run()

    def meet(self, key: Hashable, held: H, topic: str) -> Stream[H] | None:
        if len(self.streams) >= self.config.streams_max and not self._forget_one():
            self.nonsense(held, "too many streams")
            return None
        stream: Stream[H] = Stream(held.event.source, topic, settled=False)
        if held.number == 0 and self._begins_with(stream):
            stream.settled = True
            self._doubt_holes(stream)
        else:
            self.settling[stream] = self.env.now_us() + self.config.settle_us
            if self.beginnings is not None:
                self.beginnings.wake()
        return stream

    def look(self) -> bool:
        """Begin the streams of which it is known by now where; are there others?"""
        if self.settling and self.beginnings is not None:
            for stream in list(self.settling):
                self._seek_beginning(stream, self.beginnings)
            self.run()
        return bool(self.settling)

    def _begins_with(self, stream: Stream[H]) -> bool:
        """Number 0 has come."""
        return self.beginnings is None or self.beginnings.begins_with(stream.source, stream.topic)

    def _seek_beginning(self, stream: Stream[H], beginnings: Beginnings) -> None:
        first = beginnings.first_of(stream.source, stream.topic, stream.ahead)
        if first is not None:
            beginnings.on_begin(stream.source, stream.ahead[min(n for n in stream.ahead if n >= first)].event.seq)
            self.begin_in_mid_stream(stream, first)
            stream.first = 0  # what is below is not owed to us, so that it is no loss

    def _forget_one(self) -> bool:
        for key, stream in self.streams.items():
            if not stream.ahead and self.forgettable(stream):
                del self.streams[key]
                self.forgotten(stream)
                return True
        return False

    def _too_late(self, held: H) -> None:
        self.late += 1
        if held.number < held.stream.first:
            self.gap(held.stream, "1 came too late", held)

    def _hold(self, held: H) -> None:
        config, stream = self.config, held.stream
        stream.ahead[held.number] = held
        self.waiting[held] = None
        self.bytes += held.size
        self.joined(held)
        if len(stream.ahead) > config.ahead_max:
            self._give_up_oldest_hole(stream)
        while len(self.waiting) > config.waiting_max or self.bytes > config.waiting_bytes_max:
            self._give_up_oldest_hole(next(iter(self.waiting)).stream)

    def _give_up_oldest_hole(self, stream: Stream[H]) -> None:
        self._give_in(stream.ahead[min(stream.ahead)])

    def _give_in(self, held: H) -> None:
        self.run()
        if held in self.waiting:
            self.end_wait(held)
            self.run()
        assert held not in self.waiting

    # Whose turn it is

    def run(self) -> None:
        """Until nobody's turn has come any more."""
        while self.ready or self.reopen():
            held = self.ready.popleft()
            stream = held.stream
            if held in self.waiting and stream.settled and held.number == stream.next:
                self._try(held)
        self._arm()

    def _try(self, held: H) -> bool:
        """Is it done with?"""
        turn = self.judge(held)
        if turn is Turn.NOW:
            self.release(held)
        return turn is not Turn.LATER

    def release(self, held: H) -> None:
        stream = held.stream
        assert stream.settled and held.number == stream.next, "not its turn"
        stream.next += 1
        self.remove(held)
        self.released(held)
        self._call(stream)
        self.deliver(held.event, held.sender)

    def remove(self, held: H) -> None:
        """Out of the room, if it is there."""
        if held in self.waiting:
            del self.waiting[held], held.stream.ahead[held.number]
            self.bytes -= held.size
            self.left(held)

    def begin(self, stream: Stream[H], number: int) -> None:
        """Our duty begins here."""
        self.settling.pop(stream, None)
        stream.settled = True
        stream.first = number
        self._jump(stream, number)

    def begin_in_mid_stream(self, stream: Stream[H], number: int) -> None:
        self.begin(stream, number)
        self._doubt_holes(stream)

    def _doubt_holes(self, stream: Stream[H]) -> None:
        """We are new here, or new to this stream."""
        now_us, patience_us = self.env.now_us(), self.config.patience_us
        if self.beginnings is None or not self.beginnings.layer_asks:
            return
        if stream.next or self.beginnings.age_us(now_us) < patience_us:
            stream.unsure_us = now_us + self.config.settle_us + patience_us

    def skip(self, stream: Stream[H], to: int) -> None:
        """Give up what lacks before this number. A layer below that asks for what is owed to us tells by itself what it
        gave up of that. A hole among the first messages of a stream of which it says nothing was not owed to us; if
        the messages come after all, they are too late."""
        silent = self.env.now_us() <= stream.unsure_us
        if not silent:
            self.gap(stream, f"{to - stream.next} lost", stream.ahead.get(to))
        self._jump(stream, to)
        if silent:
            stream.first = to

    def pass_over(self, held: H) -> None:
        """It has its turn and may not be delivered."""
        self.late += 1
        self.gap(held.stream, "1 came too late", held)
        self.remove(held)
        self._jump(held.stream, held.number + 1)

    def _jump(self, stream: Stream[H], to: int) -> None:
        for number in [number for number in stream.ahead if number < to]:
            self.remove(stream.ahead[number])
        stream.next = stream.sound = to
        self.passed(stream)
        self._call(stream)

    def _call(self, stream: Stream[H]) -> None:
        following = stream.ahead.get(stream.next)
        if following is not None:
            self.ready.append(following)

    # What is written down

    def gap(self, stream: Stream[H], detail: str, following: H | None) -> None:
        """The text begins with the number of messages that are lost."""
        seq = -1 if following is None else following.event.seq
        self.env.record(_GAP, NOBODY, stream.source, seq, topic=stream.topic, detail=detail)

    def nonsense(self, held: H, detail: str) -> None:
        event = held.event
        self.env.record(_NONSENSE, held.sender, event.source, event.seq, topic=event.topic, detail=detail)

    # Time

    def leave(self) -> None:
        self.stop()
        if self.beginnings is not None:
            self.beginnings.leave()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _notice_standstill(self, now_us: int) -> None:
        """A process that stood still, because its machine slept say, has not waited meanwhile."""
        if now_us - self._due_us > STOOD_STILL_US:
            self.awake_us = self._due_us = now_us
            self.settling = dict.fromkeys(self.settling, now_us + self.config.settle_us)

    def waits_until(self, held: H, wait_us: int) -> int:
        return max(held.since_us, self.awake_us) + wait_us

    def deadlines(self) -> list[int]:
        """The earliest of each sort."""
        patience_us = self.config.patience_us
        found = [self.waits_until(next(iter(self.waiting)), patience_us)] if self.waiting else []
        if self.settling:
            found.append(next(iter(self.settling.values())))
        return found

    def overdue(self, now_us: int) -> None:
        """What has its time, but for waits that end in vain."""
        while self.settling:
            stream, due_us = next(iter(self.settling.items()))
            if due_us > now_us:
                return
            lowest = stream.ahead[min(stream.ahead)]
            if self.beginnings is None:
                self.begin_in_mid_stream(stream, lowest.number)
            elif self.beginnings.is_on_its_way(lowest.event, lowest.number):
                del self.settling[stream]
                self.settling[stream] = now_us + self.config.settle_us  # patience ends this wait, if nothing else does
            else:
                self.begin_in_mid_stream(
                    stream, self.beginnings.likely_first_of(stream.source, stream.topic, stream.ahead)
                )

    def _arm(self) -> None:
        """One timer for all. One that is early does no harm, so it is not moved when its reason is gone."""
        due_us = min(self.deadlines(), default=None)
        if due_us is None or (self._timer is not None and self._due_us <= due_us):
            return
        self.stop()
        self._due_us = due_us
        self._timer = self.env.after(max(0, due_us - self.env.now_us()), self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        now_us = self.env.now_us()
        self._notice_standstill(now_us)
        self.overdue(now_us)
        self.run()
        while self.waiting:
            held = next(iter(self.waiting))
            if self.waits_until(held, self.config.patience_us) > now_us:
                break
            self._give_in(held)
