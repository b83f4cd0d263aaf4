"""A node: a membership, a dissemination and, if wanted, an ordering protocol, wired together, as any driver runs them.

The wiring is all that happens here. Membership tells dissemination who its neighbours are, keep-alives carry what
dissemination wants its neighbours to know, and what comes out goes to the application through the driver: at once, or
when the order says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.roles import Disseminator, Membership, Order, handlers
from epicast.dissemination.gaps import Gaps, GapsConfig
from epicast.stacks.stack import Stack

DISSEMINATION, ORDER, GAPS = 1, 2, 3  # places in `Node.parts`

HandlerTable = dict[type[Message], tuple[int, Callable[[Any, Any, Any], bool | None]]]


class Node:
    __slots__ = ("dissemination", "env", "gaps", "membership", "on_deliver", "order")

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
        self.gaps = self._make_gaps(stack)
        if self.gaps is not None and self.order is not None:
            self.order.tell_beginnings(self.gaps.owes_from)

    def _make_gaps(self, stack: Stack) -> Gaps | None:
        """Above the layer that counts what comes; None where the dissemination tells its holes itself."""
        slot = counting_slot(stack)
        if slot is None:
            return None
        part: Any = (self.membership, self.dissemination, self.order)[slot]
        counting = part.counted()
        if stack.gaps is None and counting.pulls:
            return None  # it asks for what is missing as long as the run lasts
        config = GapsConfig(heads_interval_us=0) if stack.gaps is None else stack.gaps.config
        assert isinstance(config, GapsConfig)
        return Gaps(self.env, config, self.membership, counting, lambda: self.dissemination.next_id("")[1])

    def parts(self) -> tuple[Any, ...]:
        """What handles messages, in the order that `handler_table` numbers."""
        return (self.membership, self.dissemination, self.order, self.gaps)

    def start(self, contacts: Sequence[NodeId], *, first: bool = False, alone: bool = False) -> None:
        """`first`: of all processes, as far as that is known. `alone`: we know of nobody, but others may have been
        here."""
        self.dissemination.start()
        if self.order is not None:
            self.order.start(first=first or alone)
        if self.gaps is not None:
            self.gaps.start(first=first)
        self.membership.start(contacts)

    def settled(self) -> bool:
        """Once the process has neighbours: does what is published from now on have the guarantees of the stack?"""
        return self.order is None or self.order.settled()

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
        if self.gaps is not None:
            self.gaps.leave()
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


def counting_slot(stack: Stack) -> int | None:
    """Which part counts what comes, and leaves it to `Gaps` to tell what is missing."""
    for slot, role in ((ORDER, stack.ordering), (DISSEMINATION, stack.dissemination)):
        if role is not None and hasattr(role.make, "counted"):
            return slot
    return None


def heads_wanted(stack: Stack) -> dict[str, dict[str, Any]]:
    """The tables to add to a deployed stack, so that the last messages of a source are missed too: none if it says how
    itself, or if its dissemination tells its holes itself."""
    if stack.gaps is not None or counting_slot(stack) is None:
        return {}
    return {"gaps": {"protocol": "heads"}}


def handler_table(stack: Stack) -> HandlerTable:
    """Which part of a node handles a message, and with which function: looked up once, for all nodes of a stack."""
    table: HandlerTable = {}
    parts: list[Any] = [stack.membership.make, stack.dissemination.make]
    if stack.ordering is not None:
        parts.append(stack.ordering.make)
    slots = list(enumerate(parts))
    if stack.gaps is not None and counting_slot(stack) is not None:
        slots.append((GAPS, Gaps))
    for slot, part in slots:
        for message, handle in handlers(part).items():
            assert message not in table, f"{message.__name__} is handled twice"
            table[message] = (slot, handle)
    return table


def message_types(stack: Stack) -> list[type[Message]]:
    """Every message that a node of this stack may receive: what its decoder accepts."""
    return list(handler_table(stack))
