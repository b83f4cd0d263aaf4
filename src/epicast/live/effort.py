"""How much of our time the upkeep of one peer may take.

A node has one thread. So a peer whose bytes are always there would keep it from all others, however cheap each of its
messages is. Two rules keep it fair:

- A connection has the loop for `TURN_NS` at a time. Then others have their turn, and nothing is read from it meanwhile.
- What passes on events is worth its time. The rest is *upkeep*: messages about members and trees, definitions of
  streams, events that bring nothing new. A peer has credit for it, which grows back as a share of the time that passes.
  Without credit its connection rests after each turn for as long as that takes, and its next bytes wait in its own
  queue. So nothing of an honest peer is lost, and a flood slows down the one that sends it.

Copies of events are usual: flooding brings one over each link. But nobody brings more copies than there are messages.
So each delivery gives every peer credit for two copies, and only what exceeds this is upkeep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Our guesses. An honest peer's upkeep takes less than a hundredth of a processor; its burst is a neighbour that comes
# up and tells of a thousand flows, which takes some 50 ms.
TURN_NS = 2_000_000
UPKEEP_TURN_NS = 1_000_000  # of a peer without credit
UPKEEP_SHARE = 20  # one part in so many
BURST_NS = 250_000_000
COPIES_MAX = 65_536  # credit of a peer that brought none for long; so many take a fifth of a second


class Effort:
    """Of one connection."""

    __slots__ = ("_copies", "_credit_ns", "_delivered", "_since_ns")

    def __init__(self) -> None:
        self._credit_ns = BURST_NS
        self._since_ns = 0
        self._copies, self._delivered = COPIES_MAX, 0

    @property
    def turn_ns(self) -> int:
        return TURN_NS if self._credit_ns > 0 else UPKEEP_TURN_NS

    def spend(self, spent_ns: int, now_ns: int) -> float:
        """So much of our time went into its upkeep. Returns for how many seconds it is to rest."""
        grown = (now_ns - self._since_ns) // UPKEEP_SHARE
        self._since_ns = now_ns
        self._credit_ns = min(BURST_NS, self._credit_ns + grown) - spent_ns
        return 0.0 if self._credit_ns > 0 else -self._credit_ns * UPKEEP_SHARE / 1e9

    def brought_idle(self, count: int, delivered: int) -> bool:
        """So many events came from it that brought nothing new. `delivered`: all that we have delivered so far. Were
        they more than can be?"""
        earned, self._delivered = 2 * (delivered - self._delivered), delivered
        self._copies = min(COPIES_MAX, self._copies + earned) - count
        if self._copies >= 0:
            return False
        self._copies = 0
        return True


class Part:
    """Of a run of events: those that wait for the next turn."""

    __slots__ = ("events",)

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
