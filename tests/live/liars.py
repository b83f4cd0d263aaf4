"""Nodes that run the real code and lie: about how far they are, where they stand, or what they pass on."""

from __future__ import annotations

from typing import Any

from epicast.core.message import Position
from epicast.dissemination.brisa import Brisa
from epicast.live.node import Node

FAR = 10**12


class Boaster(Brisa):
    """Says that it stands beside each source and has got a message that nobody published; passes nothing on."""

    __slots__ = ()

    def positions(self) -> tuple[Position, ...]:
        return tuple(
            Position(flow.id, (flow.root, self.env.me), tuple((source, FAR) for source in flow.windows))
            for flow in self.flows.values()
            if flow.root != self.env.me
        )

    def _pass_on(self, flow: Any, data: Any, sender: Any) -> None:
        pass


def turn(node: Node) -> None:
    """From now on this node lies."""
    brisa = node._stack_node.dissemination
    assert type(brisa) is Brisa
    brisa.__class__ = Boaster  # type: ignore[assignment]
    driver = node._driver
    driver._take_run = None
