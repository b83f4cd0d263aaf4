"""Messages that name others which must come before them, whatever clock the names come from.

A message has its turn when the one before it in its publisher's stream is done; then all that it names must be done
too: delivered here, given up, or before our beginning. It waits for one of them at a time, and is found by that one's
name when it comes: nobody else is looked at.

A name of a publisher that we have never heard of may be of a message that is slower than those which name it, or of one
from before our beginning. Newcomers cannot tell (E-PS-15): they hold who names it for `settle_us` only. After that the
name is *unmet*: if its message comes after all, it is too late.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Generic, Literal, NamedTuple, TypeVar

from epicast.core.config import PositiveDuration
from epicast.core.env import Env
from epicast.core.errors import ConfigError, WireError
from epicast.core.ids import MsgId, NodeId
from epicast.core.ordered import Ordered
from epicast.core.roles import Deliver
from epicast.ordering.ranked import Ranked
from epicast.ordering.waiting import Cap, Held, Stream, Turn, WaitingConfig, WaitingRoom


class CausalConfig(WaitingConfig):
    clock: Literal["barrier", "vector"] = "barrier"  # our choice: barriers suit groups that change
    barrier_max: Cap = 256  # our guess; messages named by one; at the cap the publisher waits
    stable_us: PositiveDuration = 60_000_000  # our guess; what was delivered longer ago is not named any more
    vector_max: Cap = 1_024  # our guess; publishers in a group with vectors; further ones are dropped

    def check(self) -> None:
        super().check()
        if self.stable_us <= self.patience_us:
            raise ConfigError(
                f"stable_us: expected more than patience_us = {self.patience_us} us, got {self.stable_us} us"
            )


class Named(Held):
    """A message that came, with the names of others."""

    __slots__ = ("at", "awaits", "doubted", "names", "shaky", "veiled")

    def __init__(self, event: Ordered, sender: NodeId, number: int, size: int, now_us: int) -> None:
        super().__init__(event, sender, number, size, now_us)
        self.names: tuple[MsgId, ...] = ()
        self.at = 0  # those before this one are done
        self.awaits: MsgId | None = None  # the one that it waits for
        self.doubted = -1  # until when it is held, or was
        self.shaky = False  # something that it names was not delivered here
        self.veiled = False  # something that it names is from before our beginning, for sure


N = TypeVar("N", bound=Named)


class Unmet(NamedTuple):
    """Messages that were named, and given up before we heard anything of their publisher."""

    first: int  # from here on it was reported as lost
    next: int


class Predecessors(WaitingRoom[N], Generic[N]):
    __slots__ = ("awaited", "causal", "cut", "doubts", "own", "reach", "started_us", "unmet")

    def __init__(self, env: Env, config: CausalConfig, deliver: Deliver) -> None:
        super().__init__(env, config, deliver)
        self.causal = config
        self.own: Stream[N] = Stream(env.me)
        self.awaited: dict[NodeId, dict[int, dict[N, None]]] = {}  # who waits for what
        self.doubts: Ranked[N] = Ranked(self.waiting)  # held because of what we do not have, until when
        self.unmet: dict[NodeId, Unmet] = {}
        self.started_us = env.now_us()
        self.cut: dict[NodeId, int] = {}  # numbers below are from before our beginning (`beginnings.py`)
        self.reach: dict[NodeId, int] | None = None  # numbers from here on are not

    # What a clock does

    def has_room(self) -> bool:
        return True

    @abstractmethod
    def header(self) -> bytes:
        """Of our next message."""

    @abstractmethod
    def read(self, event: Ordered, sender: NodeId, header: bytes, size: int) -> N:
        """Raises WireError on nonsense."""

    def published(self, held: N) -> None:
        """Our own message is on its way."""

    def publish(self, held: N) -> None:
        assert held.number == self.own.next, "our numbers have no holes"
        self.own.next += 1
        self.published(held)
        self.deliver(held.event, held.sender)

    def check_names(self, source: NodeId, names: tuple[MsgId, ...]) -> None:
        """Nobody can have heard of its own future or of ours, and ids of two types are not of one run."""
        me = self.env.me
        for name, number in names:
            if name == source or type(name) is not type(me) or (name == me and number >= self.own.next):
                raise WireError("a name that cannot come before")

    # Waiting for names

    def judge(self, held: N) -> Turn:
        self._stop_waiting(held)
        names = held.names
        while held.at < len(names):
            name, number = names[held.at]
            stream = self.streams.get(name) if name != self.env.me else self.own
            if stream is None:
                if self.is_before(name, number):
                    held.veiled = True
                else:
                    if not self._is_unmet(name, number):
                        if self._is_owed(name, number) or not self.held_long_enough(held):
                            return self._wait_for(held, name, number)
                        self.miss(name, number)
                    held.shaky = True
            elif stream.settled and number < stream.sound:
                self.lacks(held, name, number)
            elif not stream.settled and self.is_before(name, number) and number < min(stream.ahead):
                held.veiled = True
            elif not stream.settled or number >= stream.next:
                return self._wait_for(held, name, number)
            held.at += 1
        return Turn.NOW

    def is_before(self, name: NodeId, number: int) -> bool:
        """Was it delivered elsewhere before our beginning, so that it does not come any more?"""
        return bool(self.cut) and number < self.cut.get(name, 0)

    def lacks(self, held: N, name: NodeId, number: int) -> None:
        """This comes before it and was not delivered here."""
        if self.is_before(name, number):
            held.veiled = True
        else:
            held.shaky = True

    def _is_owed(self, name: NodeId, number: int) -> bool:
        return self._is_old() or (self.reach is not None and number >= self.reach.get(name, 0))

    def know(self, cut: dict[NodeId, int], reach: dict[NodeId, int] | None) -> None:
        """What waits is judged again: some of it was taken for shaky, or for older than what it may still wait for."""
        self.cut, self.reach = cut, reach
        for stream in self.streams.values():
            if stream.ahead:
                self._leave_out_past(stream, min(stream.ahead))
        for held in self.waiting:
            held.at, held.shaky = 0, False
            self.ready.append(held)
        self.run()

    def _leave_out_past(self, stream: Stream[N], limit: int) -> None:
        """A stream that begins after a name which was given up, perhaps before we knew the cut. As long as nothing of
        it was delivered here or told as lost, messages from before our beginning are no loss."""
        to = min(limit, self.cut.get(stream.source, 0))
        if stream.settled and stream.first == stream.next < to:
            self._jump(stream, to)

    def skip(self, stream: Stream[N], to: int) -> None:
        self._leave_out_past(stream, to)
        begun = self._is_old() or (self.beginnings is not None and self.beginnings.begun)
        if stream.first == stream.next and not begun:
            self.begin(stream, to)  # as if nothing of it had been named: it was met in mid-stream
        elif stream.next < to:
            super().skip(stream, to)

    def _wait_for(self, held: N, name: NodeId, number: int) -> Turn:
        self.awaited.setdefault(name, {}).setdefault(number, {})[held] = None
        held.awaits = (name, number)
        return Turn.LATER

    def _stop_waiting(self, held: N) -> None:
        if held.awaits is None:
            return
        name, number = held.awaits
        held.awaits = None
        numbers = self.awaited[name]
        del numbers[number][held]
        if not numbers[number]:
            del numbers[number]
            if not numbers:
                del self.awaited[name]

    def _wake(self, name: NodeId, number: int) -> None:
        self.ready.extend(self.awaited[name][number])  # each stops waiting when it is judged

    def released(self, held: N) -> None:
        source, number = held.event.source, held.number
        if number in self.awaited.get(source, ()):
            self._wake(source, number)

    def passed(self, stream: Stream[N]) -> None:
        for number in self.awaited.get(stream.source, ()):
            if number < stream.next:
                self._wake(stream.source, number)

    def left(self, held: N) -> None:
        self._stop_waiting(held)

    # Names that we have never heard of

    def held_long_enough(self, held: N) -> bool:
        """What stands on something that we do not have is held for a while: it may still come. So it may while the
        layer below still asks for the beginnings of other streams."""
        due_us, now_us = self.waits_until(held, self.config.settle_us), self.env.now_us()
        if due_us <= now_us and self.settling and self.beginnings is not None and self.beginnings.layer_asks:
            due_us = min(now_us + self.config.settle_us, self.waits_until(held, self.config.patience_us))
        if due_us <= now_us:
            return True
        if held.doubted != due_us:
            held.doubted = due_us
            self.doubts.push(due_us, held)
        return False

    def miss(self, name: NodeId, number: int) -> None:
        """It is given up."""
        if self._is_unmet(name, number):
            return
        first, following = self.unmet.pop(name, Unmet(number, number))
        following = max(following, min(number, self.cut.get(name, 0)))
        if self._is_old():
            self.unmet[name] = Unmet(first, number + 1)
            self.gap(Stream(name), f"{number + 1 - following} lost", None)
        else:
            self.unmet[name] = Unmet(number + 1, number + 1)
        if len(self.unmet) > self.config.streams_max:
            del self.unmet[next(iter(self.unmet))]

    def _is_old(self) -> bool:
        """Whoever names something had it no longer than `stable_us` ago. Then we know that it is owed to us."""
        age_us = self.env.now_us() - self.started_us
        return age_us >= self.causal.stable_us + self.causal.patience_us

    def _is_unmet(self, name: NodeId, number: int) -> bool:
        unmet = self.unmet.get(name)
        return unmet is not None and number < unmet.next

    def meet(self, key: Hashable, held: N, topic: str) -> Stream[N] | None:
        stream, source = super().meet(key, held, topic), held.event.source
        if stream is None:
            return None
        for number in self.awaited.get(source, ()):
            self._wake(source, number)
        unmet = self.unmet.pop(source, None)
        if unmet is not None:
            self.begin(stream, unmet.next)
            stream.first = unmet.first
            self._leave_out_past(stream, held.number)
        return stream

    def forgettable(self, stream: Stream[N]) -> bool:
        return stream.source not in self.awaited

    def deadlines(self) -> list[int]:
        found = super().deadlines()
        doubt = self.doubts.first()
        return found if doubt is None else [*found, doubt[0]]

    def overdue(self, now_us: int) -> None:
        super().overdue(now_us)
        while (doubt := self.doubts.first()) is not None and doubt[0] <= now_us:
            self.doubts.pop()
            self.ready.append(doubt[1])
