"""Processes with an order and nothing below it: the test carries their events around, in any order, or loses them."""

from __future__ import annotations

from typing import Any

from epicast.core.ids import NodeId
from epicast.core.message import Event
from epicast.core.ordered import Ordered
from epicast.core.recording import Record, RecordingEnv
from epicast.core.records import Kind
from epicast.core.roles import Order
from epicast.ordering.causal import Causal, CausalConfig
from epicast.ordering.fifo import Fifo, FifoConfig
from tests.support.neighbours import Members


class Process:
    """One process: `got` has what it delivered, as (source, seq)."""

    def __init__(self, order: str, me: NodeId = 0, at_us: int = 0, **settings: Any) -> None:
        self.env, self.got, self.payloads = RecordingEnv(me), list[tuple[NodeId, int]](), list[bytes]()
        self.env.advance(at_us)
        self.order: Order
        if order == "fifo":
            self.order = self.room = Fifo(self.env, FifoConfig(**settings), Members(), self._deliver)  # type: ignore[arg-type]
        else:
            causal = Causal(self.env, CausalConfig(clock=order, **settings), Members(), self._deliver)  # type: ignore[arg-type]
            self.order, self.room = causal, causal.room  # type: ignore[assignment]
        self.senders: list[NodeId] = []
        self.seq = 0

    def _deliver(self, event: Event, sender: NodeId) -> None:
        self.got.append((event.source, event.seq))
        self.payloads.append(event.payload)
        self.senders.append(sender)

    def publish(self, topic: str = "t", payload: bytes = b"") -> Ordered:
        """As it travels."""
        event = Ordered(self.env.me, self.seq, topic, 0, self.order.dress(topic, payload))
        self.seq += 1
        self.order.receive(event, self.env.me)
        return event

    def receive(self, *events: Ordered, sender: NodeId = 99) -> None:
        for event in events:
            self.order.receive(event, sender)

    def advance(self, us: int) -> None:
        self.env.advance(us)

    @property
    def gaps(self) -> list[tuple[NodeId, str]]:
        return [(row.source, row.detail) for row in self.env.records if row.kind == Kind.GAP]

    @property
    def nonsense(self) -> list[Record]:
        return [row for row in self.env.records if row.kind == Kind.NONSENSE]
