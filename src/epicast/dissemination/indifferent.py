"""For disseminators that keep no state about neighbours: whom they send to is asked for anew each time."""

from __future__ import annotations

from epicast.core.ids import NodeId
from epicast.core.message import Position


class Indifferent:
    __slots__ = ()

    def neighbour_up(self, peer: NodeId) -> None: ...

    def neighbour_down(self, peer: NodeId, gone: bool) -> None: ...

    def positions(self) -> tuple[Position, ...]:
        return ()

    def heard(self, peer: NodeId, positions: tuple[Position, ...], at_us: int) -> None: ...

    def next_context(self, topic: str) -> str:
        return ""

    def uses(self, peer: NodeId) -> bool:
        return False
