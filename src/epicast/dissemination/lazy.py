"""What lazy protocols have in common: they know which events they had, keep the last ones, advertise, ask and answer.

How an event spreads is up to those that build on this. If an event is not passed on because of what the first relay
says of it (it came too far, or we asked for it), that is remembered: a later copy that says otherwise is passed on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from epicast.core.env import Env
from epicast.core.ids import NOBODY, MsgId, NodeId
from epicast.core.message import Event, Message, Position
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Membership
from epicast.core.window import SeqWindow
from epicast.dissemination.recent import Recent
from epicast.dissemination.requests import DontHave, Fetching, IHave, IWant, Requests, RequestsConfig
from epicast.dissemination.seen import Begin, begin_here, ignore, none_held

Askers = list[tuple[NodeId, int]]
"""With their distances."""


class LazyPush(ABC):
    __slots__ = (
        "_latest",
        "_latest_source",
        "_unpushed",
        "begin",
        "config",
        "deliver",
        "env",
        "members",
        "on_hole",
        "recent",
        "requests",
        "seen",
        "seq",
    )

    handles: ClassVar[tuple[type[Message], ...]] = (IHave, IWant, DontHave)
    requests: Requests

    def __init__(self, env: Env, config: RequestsConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config, self.members, self.deliver = env, config, members, deliver
        self.seen: dict[NodeId, SeqWindow] = {env.me: SeqWindow(0, config.ahead_max)}
        self.recent = Recent(config)
        self.seq = 0
        self._unpushed: dict[MsgId, int] = {}  # new ones, which of our neighbours did not get: see `_hold_back`
        self._latest_source: NodeId = NOBODY  # copies of one message come close together
        self._latest: SeqWindow | None = None
        self.begin: Begin = begin_here
        self.on_hole: Callable[[NodeId, SeqWindow], None] = ignore

    def leave(self) -> None:
        self.requests.stop()

    def next_id(self, topic: str) -> MsgId:
        return self.env.me, self.seq

    def next_context(self, topic: str) -> str:
        return ""

    # What `Gaps` needs

    held = staticmethod(none_held)  # an order above says itself what it gives up

    @property
    def pulls(self) -> bool:
        return False  # what is advertised is asked for a few times, at once

    @property
    def windows(self) -> dict[NodeId, SeqWindow]:
        return self.seen

    def counted(self) -> LazyPush:
        return self

    # What came

    def _is_new(self, source: NodeId, seq: int) -> bool:
        """Takes note of the number."""
        window = self._latest if source == self._latest_source else self._window(source, seq)
        if window is None:
            return False
        first, before = window.next, window.lost
        if not window.add(seq):
            return False
        lost = window.lost - before
        if lost:
            self.env.record(Kind.GAP, source=source, seq=first + lost, detail=f"{lost} lost")
        if window.ahead:
            self.on_hole(source, window)
        return True

    def _window(self, source: NodeId, seq: int) -> SeqWindow | None:
        """Makes one for a source that is met; None if we cannot take anything of it."""
        if source == self.env.me:
            return None
        window = self.seen.get(source)
        if window is None:
            if self._too_many(source, seq):
                return None
            # Numbers below the first one seen may still be on their way, or be owed to us.
            window = self.seen[source] = self.begin(source, seq, self.config.ahead_max)
        self._latest_source, self._latest = source, window
        return window

    def _too_many(self, source: NodeId, seq: int) -> bool:
        if len(self.seen) <= self.config.sources_max:  # we are one of those seen
            return False
        self.env.record(Kind.NONSENSE, source=source, seq=seq, detail="too many sources")
        return True

    def _lacks(self, source: NodeId, seq: int) -> bool:
        """Would it be new? Takes no note of it. One's own never is (E-CLON-11)."""
        window = self.seen.get(source)
        if window is None:
            return not self._too_many(source, seq)
        return source != self.env.me and seq not in window

    def _own(self) -> int:
        """The number of the next event of ours."""
        seq = self.seq
        self.seq += 1
        self.seen[self.env.me].add(seq)
        return seq

    def _keep(self, event: Event) -> Askers:
        """A new one; returns who asked for it before it was here."""
        key = event.source, event.seq
        self.recent.add(key, self.env.now_us(), event)
        return self.requests.arrived(key) if self.requests.wanted else []

    def _hold_back(self, key: MsgId, parts: int) -> None:
        """Remember to which sorts of neighbours this event did not go, since only the relay says why."""
        self._unpushed[key] = parts
        if len(self._unpushed) > self.config.recent_messages:
            del self._unpushed[next(iter(self._unpushed))]

    # Advertising, asking, answering

    def on_i_have(self, sender: NodeId, msg: IHave) -> None:
        if self._lacks(msg.source, msg.seq):
            self.requests.advertised((msg.source, msg.seq), sender, msg.distance)

    def on_i_want(self, sender: NodeId, msg: IWant) -> None:
        key = msg.source, msg.seq
        event = self.recent.get(key)
        if event is not None:
            self.answer(sender, event, msg.distance)
        elif self.requests.asked_too_early(key, sender, msg.distance):
            self.env.send(sender, Fetching(*key))
        else:
            self.env.send(sender, DontHave(*key))

    def on_dont_have(self, sender: NodeId, msg: DontHave) -> None:
        self.requests.refused((msg.source, msg.seq), sender)

    def on_rejected(self, sender: NodeId, msg: Event, *, blamed: bool) -> None:
        """The driver did not let it in. The next peer that has advertised it is asked; what no peer has in a good copy
        is a hole like any other."""
        self.requests.refused((msg.source, msg.seq), sender)

    @abstractmethod
    def answer(self, peer: NodeId, event: Event, distance: int) -> None:
        """Send it over a link of this length to somebody who asked."""

    # It keeps no state about neighbours, but for whom it has asked.

    def neighbour_up(self, peer: NodeId) -> None: ...  # noqa: B027  nothing to do for anyone

    def neighbour_down(self, peer: NodeId, gone: bool) -> None:
        if gone:
            self.requests.gone(peer)

    def positions(self) -> tuple[Position, ...]:
        return ()

    def heard(self, peer: NodeId, positions: tuple[Position, ...], at_us: int) -> None: ...  # noqa: B027

    def uses(self, peer: NodeId) -> bool:
        return False
