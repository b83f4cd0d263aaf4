"""A node's window on the world, and the two things a driver gives back: timers and link notices.

The same protocol runs under the simulator, live on asyncio and in unit tests because this is all it can see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

from epicast.core.ids import NOBODY, NodeId
from epicast.core.message import Event, Message


class Timer(Protocol):
    def cancel(self) -> None:
        """Stop it from firing. Cancelling twice, or after it fired, does nothing."""


class Env(Protocol):
    """Everything a protocol may do. None of it blocks, and nothing here calls back before the caller has returned."""

    @property
    def me(self) -> NodeId: ...

    @property
    def rng(self) -> Random:
        """The only chance."""

    @property
    def place(self) -> str:
        """Where this process is, from the largest region to the smallest, as in `eu/paris`; empty if nobody said."""

    def now_us(self) -> int:
        """The only clock: integer microseconds, never goes back."""

    def calendar_us(self) -> int:
        """What the calendar clock of this machine says, since 1970. Alike on all machines as far as somebody keeps
        their clocks in step; it may jump, so that nothing may wait by it."""

    def send(self, to: NodeId, msg: Message) -> None:
        """Over the held link if there is one (FIFO), else in a connection of its own. May be lost, says nothing."""

    def send_many(self, to: Sequence[NodeId], msg: Message) -> None:
        """The same message to many peers: encoded once live, one batch simulated."""

    def shout(self, msg: Message) -> None:
        """To every process of the local network that listens. Like `send`, but nobody knows who they are."""

    def after(self, delay_us: int, fn: Callable[..., None], *args: Any) -> Timer:
        """Call `fn(*args)` once `delay_us` have passed, unless the timer is cancelled or the process is gone."""

    def open(self, peer: NodeId) -> None:
        """Hold a monitored link; `on_link_up` or `on_link_down` follows. Opening a held link does nothing."""

    def close(self, peer: NodeId) -> None:
        """Let the link go after what was sent on it. The other side gets `on_link_down`, this side does not."""

    def deliver(self, event: Event, sender: NodeId) -> None:
        """The event reaches the application. `sender` is the neighbour that it came from; ourselves: we publish it now;
        NOBODY: it is our own, and the trace has its publication already."""

    def correct(self, event: Event) -> None:
        """The event reaches the application although its turn is over: it belongs before some that were delivered."""

    def record(
        self,
        kind: int,
        peer: NodeId = NOBODY,
        source: NodeId = NOBODY,
        seq: int = -1,
        hops: int = 0,
        topic: str = "",
        detail: str = "",
    ) -> None:
        """A row of the trace; `kind` is a `core.records.Kind`."""
