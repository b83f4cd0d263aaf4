"""Causal order: nobody sees an answer before the question, on whatever topics they are.

One message comes before another if the publisher of the second had delivered or published the first; and what comes
before the first comes before the second. A message carries in its header what its publisher's clock says of that:

    barrier   the names of its direct predecessors: for groups that change (`barrier.py`)
    vector    what has changed in a clock with an entry for each publisher: for groups that do not (`vector.py`)

Who has not delivered all that comes before a message lets it wait, for `patience_us` at most (`predecessors.py`,
`waiting.py`). All topics that this order carries are one domain: numbers count a publisher's messages on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from epicast.core.env import Env
from epicast.core.errors import WireError
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.ordered import Ordered, OrderName
from epicast.core.records import Kind
from epicast.core.roles import Deliver, Disseminator, Membership
from epicast.ordering import trailer
from epicast.ordering.barrier import Barrier
from epicast.ordering.beginnings import Beginnings
from epicast.ordering.predecessors import CausalConfig, Predecessors
from epicast.ordering.standing import AskStanding, Standing
from epicast.ordering.vector import Vector

__all__ = ["Causal", "CausalConfig"]

CLOCKS: dict[str, type[Predecessors[Any]]] = {"barrier": Barrier, "vector": Vector}


class Causal:
    __slots__ = ("beginnings", "env", "room")

    handles: ClassVar[tuple[type[Message], ...]] = (AskStanding, Standing)

    def __init__(self, env: Env, config: CausalConfig, members: Membership, deliver: Deliver) -> None:
        self.env = env
        self.room = CLOCKS[config.clock](env, config, deliver)
        self.beginnings: Beginnings | None = None  # newcomers cannot read the clocks of vectors
        if isinstance(self.room, Barrier):
            self.beginnings = Beginnings(
                env, trailer.CAUSAL, (config.settle_us, config.patience_us), members, self.room, cuts=True
            )
            self.room.beginnings = self.beginnings

    def order_of(self, pattern: str) -> OrderName:
        return "causal"

    def attach(self, dissemination: Disseminator) -> None:
        if self.beginnings is not None:
            self.beginnings.attach(dissemination)

    def start(self, *, first: bool = False) -> None:
        if self.beginnings is not None:
            self.beginnings.start(first=first)

    def tell_beginnings(self, tell: Callable[[NodeId, int], None]) -> None:
        if self.beginnings is not None:
            self.beginnings.on_begin = tell

    def settled(self) -> bool:
        return self.beginnings is None or self.beginnings.settled()

    def leave(self) -> None:
        self.room.leave()

    def on_ask_standing(self, sender: NodeId, msg: AskStanding) -> None:
        if self.beginnings is not None:
            self.beginnings.on_ask_standing(sender, msg)

    def on_standing(self, sender: NodeId, msg: Standing) -> None:
        if self.beginnings is not None:
            self.beginnings.on_standing(sender, msg)

    def has_room(self, topic: str) -> bool:
        return self.room.has_room()

    def dress(self, topic: str, payload: bytes) -> bytes:
        return trailer.add(payload, self.room.header())

    def receive(self, event: Event, sender: NodeId) -> None:
        source, me = event.source, self.env.me
        try:
            payload, header = trailer.split(event.payload)
            if header[0] != trailer.CAUSAL:
                raise WireError("not a causal header")
            if source == me != sender:
                raise WireError("our own, from somebody else")
            ordered = Ordered(source, event.seq, event.topic, event.hops, payload)
            held = self.room.read(ordered, sender, header, len(event.payload))
        except WireError as error:
            self.env.record(Kind.NONSENSE, sender, source, event.seq, topic=event.topic, detail=str(error))
            return
        if sender == me:
            self.room.publish(held)
        else:
            self.room.take(source, held)
