"""A node: one membership and one dissemination protocol, wired together, as any driver runs them.

The wiring is all that happens here. Membership tells dissemination who its neighbours are, keep-alives carry what
dissemination wants its neighbours to know, and what comes out goes to the application through the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Event, Message
from epicast.core.roles import Disseminator, Membership, handlers
from epicast.stacks.stack import Stack

HandlerTable = dict[type[Message], tuple[int, Callable[[Any, Any, Any], bool | None]]]


class Node:
    __slots__ = ("dissemination", "env", "membership", "on_deliver")

    parts_order: ClassVar[tuple[str, ...]] = ("membership", "dissemination")

    def __init__(self, env: Env, stack: Stack, on_deliver: Callable[[Event], None] | None = None) -> None:
        self.env = env
        self.on_deliver = on_deliver
        self.membership: Membership = stack.membership.make(env, stack.membership.config)
        self.dissemination: Disseminator = stack.dissemination.make(
            env, stack.dissemination.config, self.membership, env.deliver if on_deliver is None else self._deliver
        )
        self.membership.listener = self.dissemination

    def parts(self) -> tuple[Any, ...]:
        """What handles messages, in the order that `handler_table` numbers."""
        return (self.membership, self.dissemination)

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.dissemination.start()
        self.membership.start(contacts)

    def publish(self, topic: str, payload: bytes) -> tuple[NodeId, int]:
        source, seq = self.dissemination.broadcast(topic, payload)
        return source, seq

    def next_id(self, topic: str) -> tuple[NodeId, int]:
        source, seq = self.dissemination.next_id(topic)
        return source, seq

    def leave(self) -> None:
        """Say goodbye; the driver ends the process once it is out."""
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


def handler_table(stack: Stack) -> HandlerTable:
    """Which part of a node handles a message, and with which function: looked up once, for all nodes of a stack."""
    table: HandlerTable = {}
    for slot, part in enumerate((stack.membership.make, stack.dissemination.make)):
        for message, handle in handlers(part).items():
            assert message not in table, f"{message.__name__} is handled twice"
            table[message] = (slot, handle)
    return table


def message_types(stack: Stack) -> list[type[Message]]:
    """Every message that a node of this stack may receive: what its decoder accepts."""
    return list(handler_table(stack))
