"""How much of our time the upkeep of one peer may take.

A node has one thread. So a peer whose bytes are always there would keep it from all others, however cheap each of its
messages is. Two rules keep it fair:

- A connection has the loop for `TURN_NS` at a time. Then others have their turn, and nothing is read from it meanwhile.
- What passes on events is worth its time. The rest is *upkeep*: messages about members and trees, definitions of
  streams and the first events of each, which may have to be taken everywhere, events without content, and those that
  bring nothing new. A peer has credit for it, which grows back as a share of the time that passes.
  Without credit its connection rests after each turn for as long as that takes, and its next bytes wait in its own
  queue. So nothing of an honest peer is lost, and a flood slows down the one that sends it.

Part of a flood is passed on, by honest peers, and takes others about as much time as it took us. So the share of a peer
that stays without credit is halved each second, down to one part in `UPKEEP_PART_MAX`: what gets through is soon much
less than what the peers behind us have credit for. Once it has all its credit again, its share is the usual one.

Copies of events are usual: flooding brings one over each link. But nobody brings more copies than there are messages.
So each delivery gives every peer credit for two copies, and only what exceeds this is upkeep.

The hub counts a long time only as far as we have worked in it: on a busy machine other processes have the processor in
between, and a peer that paid for that would be held back for seconds, and be cut for being slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Our guesses. An honest peer's upkeep takes less than a hundredth of a processor. Its bursts are a thousand flows of
# which a new neighbour tells, which take some 50 ms, or that begin at once.
TURN_NS = 10_000_000
UPKEEP_TURN_NS = 1_000_000  # of a peer without credit
UPKEEP_PART = 20  # it gets one part in so many of our time
UPKEEP_PART_MAX = 160
STRICTER_EVERY_NS = 1_000_000_000
BURST_NS = 50_000_000
COPIES_MAX = 8_192  # credit of a peer that brought none for long; so many take 20 ms or so


class Effort:
    """Of one connection."""

    __slots__ = ("_copies", "_credit_ns", "_delivered", "_part", "_since_ns", "_stricter_ns")

    def __init__(self) -> None:
        self._credit_ns = BURST_NS
        self._part = UPKEEP_PART
        self._since_ns = 0
        self._stricter_ns = 0  # when its share was changed last
        self._copies, self._delivered = COPIES_MAX, 0

    @property
    def turn_ns(self) -> int:
        return TURN_NS if self._credit_ns > 0 else UPKEEP_TURN_NS

    def spend(self, spent_ns: int, now_ns: int) -> float:
        """So much of our time went into its upkeep. Returns for how many seconds it is to rest."""
        credit_ns = self._credit_ns + (now_ns - self._since_ns) // self._part
        self._since_ns = now_ns
        if credit_ns >= BURST_NS:
            credit_ns, self._part = BURST_NS, UPKEEP_PART
        self._credit_ns = credit_ns - spent_ns
        if self._credit_ns > 0:
            return 0.0
        if now_ns - self._stricter_ns > STRICTER_EVERY_NS and self._part < UPKEEP_PART_MAX:
            self._part, self._stricter_ns = 2 * self._part, now_ns
        return -self._credit_ns * self._part / 1e9

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
