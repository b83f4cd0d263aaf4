"""EpTO: total order without leader or broker (Matos et al., Middleware 2015; document 000, chapter 5).

`Balls` carry the events (`dissemination/balls.py`), and what is stable is delivered in one order (`stable.py`):

    stable: more than TTL rounds old with a global clock, more than twice as many with logical clocks

Who delivers two events delivers them in the same order as everybody else: always, whatever is lost. That everybody
delivers an event is only very probable: see `docs/protocols/epto.md` for how probable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from epicast.core.env import Env
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.ordered import OrderName
from epicast.core.roles import Deliver, Disseminator, Membership
from epicast.dissemination.balls import Balls
from epicast.dissemination.seen import Seen
from epicast.ordering.stability import Stability, Waiting
from epicast.ordering.stable import EptoConfig, Level, StableOrder

__all__ = ["Epto", "EptoConfig"]


class TotalOrder:
    """What EpTO does in each round, however payloads travel."""

    __slots__ = ("balls", "env", "order", "patience", "stability")

    payloads_in_balls: ClassVar[bool]

    def __init__(self, env: Env, config: EptoConfig, deliver: Deliver) -> None:
        self.env = env
        self.order = StableOrder(env, config, deliver)
        self.patience = 0  # rounds for which a stable event may wait for its payload
        self.balls: Balls
        self.stability: Stability

    def use(self, balls: Balls) -> None:
        self.balls = balls
        self.balls.on_round = self.on_round
        self.stability = Stability(self.balls, self.order)

    def order_of(self, pattern: str) -> OrderName:
        return "total"

    def tell_beginnings(self, tell: Callable[[NodeId, int], None]) -> None: ...

    def settled(self) -> bool:
        return True  # publishers that do not know the time yet wait for room

    def has_room(self, topic: str) -> bool:
        return self.balls.has_room() and self.order.has_room()

    def on_round(self, levels: list[tuple[int, Level]]) -> None:
        balls, order = self.balls, self.order
        for ttl, level in levels:
            order.take_level(ttl, balls.round - ttl, level, payloads=self.payloads_in_balls)
        if not self._is_quiet():
            order.release(balls.round - balls.clock.stable_after * balls.ttl, self.patience)
        self.stability.on_round()

    def _is_quiet(self) -> bool:
        """Must nothing be delivered now, stable or not?"""
        return False

    def waiting(self, topic: str | None = None) -> list[Waiting]:
        """The events that wait for their turn, each with the probability that nothing will come before it."""
        return self.stability.waiting(topic)


class Epto(TotalOrder):
    __slots__ = ("config",)

    handles: ClassVar[tuple[type[Message], ...]] = ()
    payloads_in_balls = True

    def __init__(self, env: Env, config: EptoConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config, deliver)
        self.config = config

    def attach(self, dissemination: Disseminator) -> None:
        if not isinstance(dissemination, Balls):
            raise ConfigError("stack.ordering.protocol: epto goes with balls; over another dissemination use epto-ids")
        self.use(dissemination)

    def start(self, *, first: bool = False) -> None: ...

    def leave(self) -> None: ...

    def counted(self) -> Seen:
        """For `Gaps`: balls send nothing again, so that what is missing when its turn comes stays missing."""
        return self.order.seen

    def dress(self, topic: str, payload: bytes) -> bytes:
        return payload  # the key of an event says all

    def receive(self, event: Event, sender: NodeId) -> None:
        """Balls hand over whole rounds instead."""
        raise AssertionError("balls below an order deliver nothing themselves")
