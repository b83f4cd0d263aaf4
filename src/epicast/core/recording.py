"""An Env for unit tests: it does nothing but write down what a protocol asked for.

env = RecordingEnv(me=1)
flood = Flood(env, FloodConfig(), members, deliver)
flood.on_gossip(2, Gossip(...))
assert env.effects == [Send(3, Gossip(...))]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from epicast.core.ids import NOBODY, NodeId
from epicast.core.message import Event, Message


class Send(NamedTuple):
    to: NodeId
    msg: Message


class Shout(NamedTuple):
    msg: Message


class Open(NamedTuple):
    peer: NodeId


class Close(NamedTuple):
    peer: NodeId


class Record(NamedTuple):
    kind: int
    peer: NodeId = NOBODY
    source: NodeId = NOBODY
    seq: int = -1
    hops: int = 0
    topic: str = ""
    detail: str = ""


Effect = Send | Shout | Open | Close | Record


class RecordedTimer:
    """A timer that fires when the test advances the clock past it."""

    def __init__(self, due_us: int, order: int, fn: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.due_us, self.order, self.fn, self.args = due_us, order, fn, args
        self.live = True

    def cancel(self) -> None:
        self.live = False


class RecordingEnv:
    def __init__(self, me: NodeId = 0, seed: int = 0, place: str = "") -> None:
        self.me, self.place = me, place
        self.rng = Random(seed)
        self.effects: list[Effect] = []  # sends and links
        self.records: list[Record] = []  # rows of the trace
        self.delivered: list[tuple[Event, NodeId]] = []  # what reached the application, and from whom
        self.corrected: list[Event] = []  # what reached it after its turn
        self.timers: list[RecordedTimer] = []
        self._now_us = 0
        self.skew_us = 0  # of the calendar
        self._armed = 0

    def now_us(self) -> int:
        return self._now_us

    def calendar_us(self) -> int:
        return self._now_us + self.skew_us

    def send(self, to: NodeId, msg: Message) -> None:
        self.effects.append(Send(to, msg))

    def send_many(self, to: Sequence[NodeId], msg: Message) -> None:
        self.effects.extend(Send(peer, msg) for peer in to)

    def shout(self, msg: Message) -> None:
        self.effects.append(Shout(msg))

    def after(self, delay_us: int, fn: Callable[..., None], *args: Any) -> RecordedTimer:
        assert delay_us >= 0
        self._armed += 1
        timer = RecordedTimer(self._now_us + delay_us, self._armed, fn, args)
        self.timers.append(timer)
        return timer

    def open(self, peer: NodeId) -> None:
        self.effects.append(Open(peer))

    def close(self, peer: NodeId) -> None:
        self.effects.append(Close(peer))

    def deliver(self, event: Event, sender: NodeId) -> None:
        self.delivered.append((event, sender))

    def correct(self, event: Event) -> None:
        self.corrected.append(event)

    def record(
        self,
        kind: int,
        peer: NodeId = NOBODY,
        source: NodeId = NOBODY,
        seq: int = -1,
        hops: int = 0,
        topic: str = "",
        detail: str = "",
    ) -> None:
        self.records.append(Record(kind, peer, source, seq, hops, topic, detail))

    # What a test does with it

    def take(self) -> list[Effect]:
        """The effects since the last call."""
        effects, self.effects = self.effects, []
        return effects

    def sent(self, kind: type[Message]) -> list[Send]:
        return [e for e in self.effects if isinstance(e, Send) and isinstance(e.msg, kind)]

    def advance(self, us: int) -> None:
        """Let time pass, firing what falls due in order."""
        end = self._now_us + us
        while True:
            due = [t for t in self.timers if t.live and t.due_us <= end]
            if not due:
                break
            timer = min(due, key=lambda t: (t.due_us, t.order))
            self._now_us = max(self._now_us, timer.due_us)
            timer.live = False
            timer.fn(*timer.args)
        self.timers = [t for t in self.timers if t.live]
        self._now_us = end
