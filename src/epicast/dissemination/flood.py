"""Flooding, infect and die: forward a message to all other neighbours when it comes for the first time.

On a static connected overlay of N processes and E links that costs 2E - (N - 1) transmissions a message, of which
2E - 2(N - 1) are duplicates. Obeys E-B3: never back to the process that it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

import msgspec

from epicast.core.config import Config
from epicast.core.env import Env
from epicast.core.ids import NOBODY, NodeId
from epicast.core.message import Count, Hops, Message, Payload, Topic
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Membership
from epicast.core.window import SeqWindow
from epicast.dissemination.indifferent import Indifferent
from epicast.dissemination.seen import Begin, begin_here, ignore, none_held

_NONSENSE, _GAP = int(Kind.NONSENSE), int(Kind.GAP)


class Gossip(Message, tag=40):
    """A published event on its way; `hops` counts the links crossed when it arrives."""

    layer: ClassVar[str] = "dissemination"
    source: NodeId
    seq: Count
    hops: Hops
    topic: Topic
    payload: Payload


class FloodConfig(Config):
    sources_max: Annotated[int, msgspec.Meta(ge=1)] = 65_536  # our guess; at the cap unknown sources are dropped
    ahead_max: Annotated[int, msgspec.Meta(ge=1)] = 1_024  # numbers kept above a hole, for each source


class Flood(Indifferent):
    """What is forwarded once, and which numbers of each source were seen."""

    __slots__ = (
        "_recent",
        "_recent_source",
        "begin",
        "config",
        "deliver",
        "env",
        "members",
        "on_hole",
        "seen",
        "seq",
    )

    handles: ClassVar[tuple[type[Message], ...]] = (Gossip,)

    def __init__(self, env: Env, config: FloodConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config, self.members, self.deliver = env, config, members, deliver
        self.seen: dict[NodeId, SeqWindow] = {}
        self._recent_source: NodeId = NOBODY  # copies of one message come close together
        self._recent: SeqWindow | None = None
        self.seq = 0
        self.begin: Begin = begin_here
        self.on_hole: Callable[[NodeId, SeqWindow], None] = ignore

    def start(self) -> None: ...

    def leave(self) -> None: ...

    def broadcast(self, topic: str, payload: bytes) -> tuple[NodeId, int]:
        me, seq = self.env.me, self.seq
        self.seq += 1
        event = Gossip(me, seq, 0, topic, payload)
        self.deliver(event, me)
        self.env.send_many(self.members.peers(), Gossip(me, seq, 1, topic, payload))
        return me, seq

    def next_id(self, topic: str) -> tuple[NodeId, int]:
        return self.env.me, self.seq

    # What `Gaps` needs

    pulls = False  # nothing is sent again
    held = staticmethod(none_held)  # an order above says itself what it gives up

    @property
    def windows(self) -> dict[NodeId, SeqWindow]:
        return self.seen

    def counted(self) -> Flood:
        return self

    # Events

    def on_gossip(self, sender: NodeId, msg: Gossip) -> bool:
        source, seq = msg.source, msg.seq
        window = self._recent
        if source != self._recent_source or window is None:
            window = self.seen.get(source) or self._meet(source, seq)
            if window is None:
                return True
            self._recent_source, self._recent = source, window
        # Most copies are duplicates: tell them without a call.
        if seq < window.next and window.before is None:
            return True
        if seq == window.next and not window.ahead:
            window.next += 1
        elif not self._is_new(source, seq, window):
            return True
        self.deliver(msg, sender)
        peers = list(self.members.peers())
        if sender in peers:
            peers.remove(sender)
        self.env.send_many(peers, Gossip(source, seq, msg.hops + 1, msg.topic, msg.payload))
        return False

    def _is_new(self, source: NodeId, seq: int, window: SeqWindow) -> bool:
        """Takes note of a number that does not come in turn."""
        first, before = window.next, window.lost
        if not window.add(seq):
            return False
        lost = window.lost - before
        if lost:
            self.env.record(_GAP, source=source, seq=first + lost, detail=f"{lost} lost")
        if window.ahead:
            self.on_hole(source, window)
        return True

    def _meet(self, source: NodeId, seq: int) -> SeqWindow | None:
        if source == self.env.me:
            return None
        if len(self.seen) >= self.config.sources_max:
            self.env.record(_NONSENSE, source=source, seq=seq, detail="too many sources")
            return None
        # Numbers below the first one seen may still be on their way over slower paths.
        window = self.seen[source] = self.begin(source, seq, self.config.ahead_max)
        return window
