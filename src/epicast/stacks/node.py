"""A node: a membership, a dissemination and, if wanted, an ordering protocol, wired together, as any driver runs them.

The wiring is all that happens here. Membership tells dissemination who its neighbours are, keep-alives carry what
dissemination wants its neighbours to know, and what comes out goes to the application through the driver: at once, or
when the order says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.roles import Disseminator, Membership, Order, handlers
from epicast.stacks.stack import Stack

HandlerTable = dict[type[Message], tuple[int, Callable[[Any, Any, Any], bool | None]]]


class Node:
    __slots__ = ("dissemination", "env", "membership", "on_deliver", "order")

    def __init__(self, env: Env, stack: Stack, on_deliver: Callable[[Event], None] | None = None) -> None:
        self.env = env
        self.on_deliver = on_deliver
        self.membership: Membership = stack.membership.make(env, stack.membership.config)
        deliver = env.deliver if on_deliver is None else self._deliver
        self.order: Order | None = None
        if stack.ordering is not None:
            self.order = stack.ordering.make(env, stack.ordering.config, self.membership, deliver)
            deliver = self.order.receive
        self.dissemination: Disseminator = stack.dissemination.make(
            env, stack.dissemination.config, self.membership, deliver
        )
        if self.order is not None:
            self.order.attach(self.dissemination)
        self.membership.listener = self.dissemination

    def parts(self) -> tuple[Any, ...]:
        """What handles messages, in the order that `handler_table` numbers."""
        return (self.membership, self.dissemination, self.order)

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.dissemination.start()
        if self.order is not None:
            self.order.start()
        self.membership.start(contacts)

    def has_room(self, topic: str) -> bool:
        """May the application publish now, or should the driver wait?"""
        return self.order is None or self.order.has_room(topic)

    def publish(self, topic: str, payload: bytes) -> tuple[NodeId, int]:
        return self.broadcast(topic, self.dress(topic, payload))

    def dress(self, topic: str, payload: bytes) -> bytes:
        """With what the order has to say; `broadcast` follows, for drivers that sign what goes out."""
        return payload if self.order is None else self.order.dress(topic, payload)

    def broadcast(self, topic: str, dressed: bytes) -> tuple[NodeId, int]:
        return self.dissemination.broadcast(topic, dressed)

    def next_id(self, topic: str) -> tuple[NodeId, int]:
        return self.dissemination.next_id(topic)

    def next_context(self, topic: str) -> str:
        return self.dissemination.next_context(topic)

    def leave(self) -> None:
        """Say goodbye; the driver ends the process once it is out."""
        if self.order is not None:
            self.order.leave()
        self.dissemination.leave()
        self.membership.leave()

    def on_link_up(self, peer: NodeId) -> None:
        self.membership.on_link_up(peer)

    def on_link_down(self, peer: NodeId) -> None:
        self.membership.on_link_down(peer)

    def _deliver(self, event: Event, sender: NodeId) -> None:
        self.env.deliver(event, sender)
        if self.on_deliver is not None:
            self.on_deliver(event)


class _NoOrder:
    handles: ClassVar[tuple[type[Message], ...]] = ()


def handler_table(stack: Stack) -> HandlerTable:
    """Which part of a node handles a message, and with which function: looked up once, for all nodes of a stack."""
    table: HandlerTable = {}
    order = stack.ordering.make if stack.ordering is not None else _NoOrder
    for slot, part in enumerate((stack.membership.make, stack.dissemination.make, order)):
        for message, handle in handlers(part).items():
            assert message not in table, f"{message.__name__} is handled twice"
            table[message] = (slot, handle)
    return table


def message_types(stack: Stack) -> list[type[Message]]:
    """Every message that a node of this stack may receive: what its decoder accepts."""
    return list(handler_table(stack))
