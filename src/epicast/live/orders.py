"""The orders of a live node's topics: what its stack has to have for them, and what an application may ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import msgspec

from epicast.core.errors import EpicastError
from epicast.core.message import Event
from epicast.core.ordered import ORDERS, Ordered
from epicast.core.roles import Order
from epicast.stacks import stack as stacks
from epicast.stacks.stack import Stack

PROMISED = {"none": (), "fifo": ("fifo",), "causal": ("fifo", "causal"), "total": ("fifo", "total")}
"""For all topics together. Total order keeps causal order within a topic, but topics do not wait for each other."""
ROUND_US = 50_000  # of EpTO, where nobody said otherwise: messages take less on most networks


def with_order(stack: Stack, order: str | Mapping[str, str] | None, settings: Mapping[str, Any] | None) -> Stack:
    """The stack with the orders that the user asks for: one for all topics, or one for each pattern."""
    if order is None:
        if settings is not None:
            raise EpicastError("order_settings are for topics that have an order: give order")
        return stack
    if stack.ordering is not None:
        raise EpicastError(f"stack {stack.name} has its own order, {stack.ordering.protocol}: leave order out")
    topics = dict(order) if isinstance(order, Mapping) else {}
    default = order if isinstance(order, str) else "none"
    for name in (*topics.values(), default):
        if name not in ORDERS:
            raise EpicastError(f"order: expected {', '.join(ORDERS)}, got {name!r}")
    given = {key: dict(table) for key, table in (settings or {}).items()}
    total = given.setdefault("total", {})
    balls = dict(total.get("balls", {}))
    total["balls"] = balls if "period" in balls else {"period_us": ROUND_US, **balls}
    promised = PROMISED[default] if not topics else ()
    table = {"protocol": "by-topic", "topics": topics, "default": default, **given}
    return stacks.from_table({**stack.source, "ordering": table, "promises": [*stack.promises, *promised]})


def protocols(stack: Stack) -> str:
    """What two nodes must have in common."""
    roles = [stack.membership.protocol, stack.dissemination.protocol]
    if stack.ordering is not None:
        said = msgspec.json.encode(_rules(stack.ordering.config))
        roles.append(f"{stack.ordering.protocol}-{crc32(said):08x}")
    return "+".join(roles)


def _rules(config: Any) -> list[Any]:
    """Which topic has which order, where that is a matter of settings."""
    return [*getattr(config, "topics", {}).items(), getattr(config, "default", "")]


class Orders:
    """What a node's order answers, whichever it is. Without one nothing has an order."""

    def __init__(self, order: Order | None) -> None:
        self._order: Any = order
        self._by_topic = hasattr(order, "route")

    def has(self, topic: str) -> bool:
        if self._by_topic:
            return self._order.route(topic) is not None
        return self._order is not None

    def tell_arrivals(self, tell: Callable[[Event], None]) -> None:
        """Of events on ordered topics, as they come."""
        if self._by_topic:
            self._order.on_arrival = tell

    def require(self, pattern: str, wanted: str) -> None:
        """Do all topics that fit the pattern have at least this order?"""
        if wanted not in ORDERS:
            raise EpicastError(f"order: expected {', '.join(ORDERS)}, got {wanted!r}")
        if wanted == "none" and self._order is not None and not self._by_topic:
            raise EpicastError("this stack has one order for all topics: for messages as they come take another stack")
        given = "none" if self._order is None else self._order.order_of(pattern)
        if ORDERS.index(wanted) > ORDERS.index(given):
            raise EpicastError(
                f"topics that fit {pattern!r} do not all have {wanted} order: publishers must know, so give all nodes "
                f'the same order={{"{pattern}": "{wanted}"}}'
            )

    # Total order: what waits

    @property
    def _total(self) -> Any:
        total = self._order.total if self._by_topic else self._order
        if total is None or not hasattr(total, "waiting"):
            raise EpicastError("no topic of this node has total order")
        return total

    def waiting(self, topic: str | None) -> list[tuple[Ordered, float]]:
        return [(each.event, each.probability) for each in self._total.waiting(topic)]

    def take_early(self, source: str, seq: int) -> Ordered | None:
        total = self._total
        for each in total.waiting(None):
            if (each.event.source, each.event.seq) == (source, seq):
                taken: Ordered | None = total.order.take_early(each.key)
                return taken
        return None
