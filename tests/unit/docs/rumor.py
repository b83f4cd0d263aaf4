"""Rumor mongering with feedback and a counter (Demers et al., PODC 1987).

A rumor is hot while it has heat left: each round it is pushed to one random neighbour. A neighbour that knew it says
so, which costs one degree. A cold rumor is still recognised and no longer pushed.

Departure: rounds are timers of each process, since clocks are not synchronised.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from epicast.core.config import Config, PositiveDuration
from epicast.core.env import Env
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import Count, Hops, Message, Payload, Topic
from epicast.core.periodic import Periodic
from epicast.core.roles import Deliver, Membership
from epicast.core.window import SeqWindow
from epicast.dissemination.indifferent import Indifferent


class Push(Message, tag=900):
    """Offers a rumor to a random neighbour."""

    layer: ClassVar[str] = "dissemination"
    source: NodeId
    seq: Count
    hops: Hops
    topic: Topic
    payload: Payload


class Known(Message, tag=901):
    """Answers a push that told nothing new."""

    layer: ClassVar[str] = "dissemination"
    source: NodeId
    seq: Count


class RumorConfig(Config):
    heat_max: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4  # the paper's k; 4 is our guess
    round_us: PositiveDuration = 100_000  # our guess: the paper counts rounds, not seconds
    hot_max: Annotated[int, msgspec.Meta(ge=1)] = 1_024  # our guess; at the cap the one longest unanswered goes cold
    sources_max: Annotated[int, msgspec.Meta(ge=1)] = 65_536  # our guess; at the cap unknown sources are dropped


class RumorMongering(Indifferent):
    handles: ClassVar[tuple[type[Message], ...]] = (Push, Known)

    def __init__(self, env: Env, config: RumorConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config, self.members, self.deliver = env, config, members, deliver
        self.seen: dict[NodeId, SeqWindow] = {}
        self.hot: dict[MsgId, tuple[int, Push]] = {}  # heat left, and what to push
        self.seq = 0
        self._round = Periodic(env, config.round_us, self._on_round)

    def start(self) -> None:
        self._round.start()

    def leave(self) -> None:
        self._round.stop()

    def broadcast(self, topic: str, payload: bytes) -> MsgId:
        rumor = Push(self.env.me, self.seq, 0, topic, payload)
        self.seq += 1
        self._learn(rumor, self.env.me)
        return rumor.source, rumor.seq

    def on_push(self, sender: NodeId, msg: Push) -> bool:
        if self._learn(msg, sender):
            return False
        self.env.send(sender, Known(msg.source, msg.seq))
        return True  # a duplicate: the driver counts it

    def on_known(self, sender: NodeId, msg: Known) -> None:
        rumor = msg.source, msg.seq
        if rumor not in self.hot:
            return  # cold by now: it has no heat to lose
        heat, push = self.hot.pop(rumor)
        if heat > 1:
            self.hot[rumor] = heat - 1, push

    def _on_round(self) -> None:
        for _, push in self.hot.values():
            self.env.send_many(self.members.sample(1), push)

    def _learn(self, rumor: Push, sender: NodeId) -> bool:
        """True if it is new to us."""
        window = self.seen.get(rumor.source)
        if window is None:
            if len(self.seen) >= self.config.sources_max:
                return False
            window = self.seen[rumor.source] = SeqWindow(rumor.seq, provisional=rumor.seq > 0)
        if not window.add(rumor.seq):
            return False
        if len(self.hot) >= self.config.hot_max:
            del self.hot[next(iter(self.hot))]
        onward = Push(rumor.source, rumor.seq, rumor.hops + 1, rumor.topic, rumor.payload)
        self.hot[rumor.source, rumor.seq] = self.config.heat_max, onward
        self.deliver(rumor, sender)
        return True
