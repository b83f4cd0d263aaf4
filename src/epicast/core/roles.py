"""The small interfaces through which the roles of a stack talk. `stacks/` is the only place where they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from epicast.core.ids import NodeId
from epicast.core.message import Event, Message, Position
from epicast.core.ordered import OrderName

Deliver = Callable[[Event, NodeId], None]
"""Hands an event up, with the neighbour that it came from (the source itself for one's own)."""


class Neighbours(Protocol):
    """Hears from the membership: implemented by whatever runs over it."""

    def neighbour_up(self, peer: NodeId) -> None: ...

    def neighbour_down(self, peer: NodeId, gone: bool) -> None:
        """`gone`: the process failed or left; otherwise it is alive and merely no longer our neighbour."""

    def positions(self) -> tuple[Position, ...]:
        """What to tell the neighbours on the next keep-alive."""

    def heard(self, peer: NodeId, positions: tuple[Position, ...], at_us: int) -> None:
        """What a neighbour's keep-alive told, which came at that time."""

    def uses(self, peer: NodeId) -> bool:
        """Does traffic depend on the link to this neighbour? Asked before a surplus link is given up."""


class Membership(Protocol):
    """Who knows whom."""

    handles: ClassVar[tuple[type[Message], ...]]
    holds_links: ClassVar[bool]  # has it a connection to each neighbour all the time?
    listener: Neighbours

    @property
    def news_us(self) -> int:
        """How often neighbours are told the `positions` of the layer above; 0: never."""

    def start(self, contacts: Sequence[NodeId]) -> None:
        """Join through any of the contacts; none of them makes this the first process."""

    def meet(self, contact: NodeId) -> None:
        """One more process that may be asked to let us in, found after the start."""

    def leave(self) -> None:
        """Tell the neighbours; the driver ends the process afterwards."""

    def peers(self) -> Sequence[NodeId]:
        """The neighbours, in a stable order. Not to be changed by the caller."""

    def sample(self, count: int) -> list[NodeId]:
        """Some neighbours, each at most once."""

    def acquaintances(self, count: int) -> list[NodeId]:
        """Some processes that we know of, neighbours or not: as uniform a choice as the membership can give."""

    def rtt_us(self, peer: NodeId) -> int | None:
        """Measured round trip to a neighbour, if there was one."""

    def distance(self, peer: NodeId) -> int:
        """0: the neighbour is near; more, the farther away it is. Always 0 where nobody knows about places."""

    def widen(self) -> None:
        """The layer above found nobody useful among the neighbours: bring in somebody from farther away."""

    def sign_of_life(self, peer: NodeId) -> None:
        """Something came from this process: as good as a keep-alive, which may be far behind it in a full queue."""

    def on_link_up(self, peer: NodeId) -> None: ...

    def on_link_down(self, peer: NodeId) -> None: ...


class Disseminator(Neighbours, Protocol):
    """How a payload reaches everyone."""

    handles: ClassVar[tuple[type[Message], ...]]

    def start(self) -> None: ...

    def leave(self) -> None: ...

    def broadcast(self, topic: str, payload: bytes) -> tuple[NodeId, int]:
        """Publish; returns the message's id. The publisher delivers its own message."""

    def next_id(self, topic: str) -> tuple[NodeId, int]:
        """The id that the next message on this topic will have."""

    def next_context(self, topic: str) -> str:
        """What its `context` will be."""


class Rejecting(Protocol):
    """An ability that a disseminator may have: it takes note of events that the driver does not let in."""

    def on_rejected(self, sender: NodeId, msg: Any, *, blamed: bool) -> None:
        """This event came from the sender, with a signature that is missing or wrong. `blamed`: no honest relay passes
        such an event on. Without the ability the event is as if it had never come, and is perhaps asked for again."""


class Settling(Protocol):
    """An ability that a disseminator may have: it asks for what was published before a newcomer had neighbours, and
    knows when all of that is here."""

    def complete(self, source: NodeId, seq: int) -> bool:
        """Has everything up to this number come that is owed to us, or been given up?"""

    def hasten(self, *, unheard: bool) -> None:
        """The layer above waits for that: ask for it now. `unheard`: for streams of which nothing has come, too."""


class Order(Protocol):
    """When a received event may be delivered. What it has to say about an event travels at the end of its payload, so
    that it works over any disseminator."""

    handles: ClassVar[tuple[type[Message], ...]]

    def order_of(self, pattern: str) -> OrderName:
        """The order that all topics have which fit the pattern: the weakest, if they differ."""

    def attach(self, dissemination: Disseminator) -> None:
        """Whose events it gets. Called once, before the start."""

    def start(self, *, first: bool = False) -> None:
        """`first`: there was nobody before us."""

    def tell_beginnings(self, tell: Callable[[NodeId, int], None]) -> None:
        """Where a newcomer's duty begins, by source and number, as soon as the order learns it."""

    def settled(self) -> bool:
        """Once the process has neighbours: will what is published from now on have its turn as soon as it comes?"""

    def leave(self) -> None: ...

    def has_room(self, topic: str) -> bool:
        """May the application publish on this topic now? If not, the driver waits and asks again."""

    def dress(self, topic: str, payload: bytes) -> bytes:
        """The payload of the next event on this topic, as it travels. The driver broadcasts it at once, or never asks
        for another."""

    def receive(self, event: Event, sender: NodeId) -> None:
        """From the disseminator, as it comes, our own too; goes on to the application in order."""


def handler_name(message: type[Message]) -> str:
    """`ForwardJoin` is handled by `on_forward_join`."""
    name = "".join("_" + c.lower() if c.isupper() else c for c in message.__name__)
    return "on" + name


def handlers(part: Any) -> dict[type[Message], Callable[..., bool | None]]:
    """The functions of a class, by the message type that each one handles.

    A handler of payload answers True when it had the payload already: the driver counts and traces it as a duplicate.
    """
    return {message: getattr(part, handler_name(message)) for message in part.handles}
