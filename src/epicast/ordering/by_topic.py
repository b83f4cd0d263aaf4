"""To each topic the order that it asks for: none, FIFO, causal or total.

Which topic has which order is told by patterns, of which the first that fits counts, and must be told alike to all
processes: it is the publisher who adds what an order needs to know. Orders do not wait for each other. Within a topic
each keeps what the weaker ones promise:

    none < fifo < causal < total

An application that is in a hurry may have what comes on an ordered topic at once: `on_arrival` gets every event as the
dissemination brings it, before it waits for its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from epicast.core.config import Config
from epicast.core.env import Env
from epicast.core.errors import ConfigError, EpicastError, WireError
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.ordered import ORDERS, Ordered, OrderName
from epicast.core.patterns import compiled, covers, matches, overlap
from epicast.core.roles import Deliver, Disseminator, Membership, Order
from epicast.dissemination.ball_messages import Ball, Heads
from epicast.ordering import trailer
from epicast.ordering.causal import Causal, CausalConfig
from epicast.ordering.epto_ids import EptoIds, EptoIdsConfig
from epicast.ordering.fifo import Fifo, FifoConfig
from epicast.ordering.standing import AskStanding, Standing

__all__ = ["ByTopic", "ByTopicConfig"]

ROUTES_MAX = 65_536  # topics whose order is remembered


class ByTopicConfig(Config):
    topics: dict[str, OrderName] = {}  # by pattern; the first that fits counts
    default: OrderName = "none"  # of topics that no pattern fits
    fifo: FifoConfig = FifoConfig()
    causal: CausalConfig = CausalConfig()
    total: EptoIdsConfig = EptoIdsConfig()

    def check(self) -> None:
        for pattern in self.topics:
            try:
                compiled(pattern)
            except EpicastError as error:
                raise ConfigError(f"topics: {error}") from None

    def order_of(self, topic: str) -> OrderName:
        return next((order for pattern, order in self.topics.items() if matches(pattern, topic)), self.default)

    def weakest(self, pattern: str) -> OrderName:
        """Of the topics that fit a pattern."""
        found: list[OrderName] = []
        for rule, order in self.topics.items():
            if overlap(rule, pattern):
                found.append(order)
            if covers(rule, pattern):
                break
        else:
            found.append(self.default)
        return min(found, key=ORDERS.index)


class ByTopic:
    __slots__ = ("_by_kind", "_deliver", "_parts", "_routes", "config", "env", "on_arrival", "total")

    handles: ClassVar[tuple[type[Message], ...]] = (Ball, Heads, AskStanding, Standing)

    def __init__(self, env: Env, config: ByTopicConfig, members: Membership, deliver: Deliver) -> None:
        self.env, self.config, self._deliver = env, config, deliver
        self.on_arrival: Callable[[Event], None] | None = None
        kinds: dict[str, tuple[Any, Config]] = {
            "fifo": (Fifo, config.fifo),
            "causal": (Causal, config.causal),
            "total": (EptoIds, config.total),
        }
        used = {*config.topics.values(), config.default}
        self._parts: dict[str, Order] = {
            name: make(env, settings, members, deliver) for name, (make, settings) in kinds.items() if name in used
        }
        total = self._parts.get("total")
        self.total = total if isinstance(total, EptoIds) else None
        self._by_kind = {
            kind: self._parts.get(name) for name, kind in (("fifo", trailer.FIFO), ("causal", trailer.CAUSAL))
        }
        self._routes: dict[str, Order | None] = {}

    def order_of(self, pattern: str) -> OrderName:
        return self.config.weakest(pattern)

    def attach(self, dissemination: Disseminator) -> None:
        for part in self._parts.values():
            part.attach(dissemination)

    def start(self, *, first: bool = False) -> None:
        for part in self._parts.values():
            part.start(first=first)

    def tell_beginnings(self, tell: Callable[[NodeId, int], None]) -> None:
        for part in self._parts.values():
            part.tell_beginnings(tell)

    def settled(self) -> bool:
        return all(part.settled() for part in self._parts.values())

    def leave(self) -> None:
        for part in self._parts.values():
            part.leave()

    def on_ball(self, sender: NodeId, msg: Ball) -> None:
        if self.total is not None:
            self.total.on_ball(sender, msg)

    def on_heads(self, sender: NodeId, msg: Heads) -> None:
        if self.total is not None:
            self.total.on_heads(sender, msg)

    def on_ask_standing(self, sender: NodeId, msg: AskStanding) -> None:
        part: Any = self._by_kind.get(msg.order)
        if part is not None:
            part.on_ask_standing(sender, msg)

    def on_standing(self, sender: NodeId, msg: Standing) -> None:
        part: Any = self._by_kind.get(msg.order)
        if part is not None:
            part.on_standing(sender, msg)

    # Events

    def route(self, topic: str) -> Order | None:
        """Whose the events of this topic are; None: nobody's, they are delivered as they come."""
        if topic not in self._routes:
            if len(self._routes) >= ROUTES_MAX:
                self._routes.clear()
            self._routes[topic] = self._parts.get(self.config.order_of(topic))
        return self._routes[topic]

    def has_room(self, topic: str) -> bool:
        part = self.route(topic)
        return part is None or part.has_room(topic)

    def dress(self, topic: str, payload: bytes) -> bytes:
        part = self.route(topic)
        return payload if part is None else part.dress(topic, payload)

    def receive(self, event: Event, sender: NodeId) -> None:
        part = self.route(event.topic)
        if part is None:
            self._deliver(event, sender)
            return
        if self.on_arrival is not None:
            self._tell_arrival(event, self.on_arrival)
        part.receive(event, sender)

    def _tell_arrival(self, event: Event, tell: Callable[[Event], None]) -> None:
        try:
            payload, _ = trailer.split(event.payload)
        except WireError:
            return  # the order of the topic will say so
        tell(Ordered(event.source, event.seq, event.topic, event.hops, payload))
