"""How probable it is that nothing will come before an event that still waits (the documents' future work, section 5.5).

An event of age a is out of order only if something that belongs before it has not come yet. On average there are

    sum over the rounds u before now of   rate * may_be_older(u) * has_not_come(a - u)

of those: `rate` events are published in a round, those of round u (counted from the event's birth) came here by now or
did not. With a global clock they belong before it if they are older (u < 0, and half of those of its own round). With
logical clocks also younger ones may, as long as their publisher had not heard of the event: `has_not_come(u)`; and of
two events whose publishers had not heard of each other's, either may come first. The number of such events is Poisson
distributed, so there is none with probability exp(-sum).

`has_not_come(a)` is what this process has seen itself: the share of events that were older than a when they came. It
knows about distances and losses what theory does not, but little about what is rare: it counts half an event as missing
that never was, and is never less than what balls and bins predict. So the odds are on the safe side.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from epicast.core.balls_and_bins import unreached
from epicast.core.ordered import Ordered
from epicast.dissemination.balls import Balls
from epicast.ordering.stable import StableOrder

SIGHTS_MAX = 4_096  # the older half of what was seen is forgotten then
RATE_ROUNDS = 32  # over which the rate is averaged


class Waiting(NamedTuple):
    event: Ordered
    key: bytes
    probability: float  # that nothing will come before it


class Stability:
    __slots__ = ("_accepted", "balls", "order", "rate")

    def __init__(self, balls: Balls, order: StableOrder) -> None:
        self.balls, self.order = balls, order
        self.rate = 0.0  # events in a round
        self._accepted = 0

    def on_round(self) -> None:
        order = self.order
        self.rate += (order.accepted - self._accepted - self.rate) / min(self.balls.round, RATE_ROUNDS)
        self._accepted = order.accepted
        if sum(order.sights.values()) > SIGHTS_MAX:
            order.sights = {age: count // 2 for age, count in order.sights.items() if count > 1}

    def waiting(self, topic: str | None = None) -> list[Waiting]:
        misses, now = self._misses(), self.balls.round
        known: dict[int, float] = {}
        found = []
        for event in self.order.waiting(topic):
            age = now - self.order.births[event.key]
            if age not in known:
                known[age] = exp(-self.rate * self._expected(age, misses))
            found.append(Waiting(event.event(), event.key, known[age]))
        return found

    def _expected(self, age: int, misses: list[float]) -> float:
        """Events published a round, times this, belong before one of that age and have not come."""
        last = len(misses) - 1
        older = sum(misses[min(age, last) + 1 :]) + misses[min(age, last)] / 2
        if self.balls.clock.stable_after == 1:
            return older
        younger = sum(misses[min(u, last)] * misses[min(age - u, last)] for u in range(age))
        return (older + younger) / 2

    def _misses(self) -> list[float]:
        """By age: the probability that an event has not come by then."""
        balls, sights = self.balls, self.order.sights
        predicted = unreached(balls.nodes, balls.fanout, balls.ttl)
        total = sum(sights.values())
        later, found = total, []
        for age, unseen in enumerate(predicted):
            later -= sights.get(age, 0)
            found.append(max(unseen, (later + 0.5) / (total + 1)))
        return found
