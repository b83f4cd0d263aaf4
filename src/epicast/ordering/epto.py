"""EpTO: total order without leader or broker (Matos et al., Middleware 2015; document 000, chapter 5).

`Balls` carry the events (`dissemination/balls.py`), and what is stable is delivered in one order (`stable.py`):

    stable: more than TTL rounds old with a global clock, more than twice as many with logical clocks

Who delivers two events delivers them in the same order as everybody else: always, whatever is lost. That everybody
delivers an event is only very probable: see `docs/protocols/epto.md` for how probable.
"""

from __future__ import annotations

from typing import ClassVar

from epicast.core.env import Env
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Disseminator, Membership
from epicast.dissemination.balls import MEMORY_ROUNDS, Balls, Level
from epicast.ordering.stability import Stability, Waiting
from epicast.ordering.stable import EptoConfig, StableOrder

__all__ = ["Epto", "EptoConfig"]


class Epto:
    __slots__ = ("balls", "config", "env", "order", "stability")

    handles: ClassVar[tuple[type[Message], ...]] = ()

    def __init__(self, env: Env, config: EptoConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config = env, config
        self.order = StableOrder(env, config, deliver)
        self.balls: Balls
        self.stability: Stability

    def attach(self, dissemination: Disseminator) -> None:
        if not isinstance(dissemination, Balls):
            raise ConfigError("stack.ordering.protocol: epto goes with balls; over another dissemination use epto-ids")
        self.balls = dissemination
        self.balls.on_round = self.on_round
        self.stability = Stability(self.balls, self.order)

    def start(self) -> None: ...

    def leave(self) -> None: ...

    def has_room(self, topic: str) -> bool:
        return self.balls.has_room() and self.order.has_room()

    def dress(self, topic: str, payload: bytes) -> bytes:
        return payload  # the key of an event says all

    def receive(self, event: Event, sender: NodeId) -> None:
        """Our own, as it goes into its first ball: it is delivered when its turn comes."""
        me = self.env.me
        self.env.record(Kind.PUBLISH, me, me, event.seq, 0, event.topic)

    def on_round(self, levels: list[tuple[int, Level]]) -> None:
        balls, order = self.balls, self.order
        pending = order.pending
        for ttl, level in levels:
            birth = balls.round - ttl
            for key, (topic, payload) in level.items():
                known = pending.get(key)
                if known is None:
                    order.take(key, birth, ttl, topic, payload)
                elif birth < known.birth:
                    known.birth = birth
        order.release(balls.round - balls.clock.stable_after * balls.ttl)
        self.stability.on_round()
        if balls.round % (MEMORY_ROUNDS * balls.ttl) == 0:
            order.forget_old()

    def waiting(self, topic: str | None = None) -> list[Waiting]:
        """The events that wait for their turn, each with the probability that nothing will come before it."""
        return self.stability.waiting(topic)
