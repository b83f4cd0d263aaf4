"""How many processes there are, as each of them finds out by itself (E-E16 and the gap that the documents left: EpTO
needs to know n).

Every process draws some random numbers, from an exponential distribution; the smallest of n such numbers is n times
smaller than one of them, on average. Processes tell each other the smallest that they know of, each in turn, so that
soon all know the same ones, and all come to the same estimate: (k - 1) / sum of the k smallest.

    estimate = n, give or take 1 / sqrt(k - 2): 13 % for 64 numbers, which is a fifth of a round of gossip

Smallest numbers do not forget who has gone. So the count begins anew now and then: in an *epoch* everybody draws again.
What the last epoch came to holds until the new one exceeds it, so that growth is seen at once and shrinkage after an
epoch.

A number x travels as its mark, (8 - ln x) * 1024: the largest mark is that of the smallest number.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.periodic import Periodic
from epicast.core.roles import Membership
from epicast.dissemination.ball_messages import HeadCountConfig, Heads

AHEAD_MAX = 1 << 20  # epochs that a process may have missed while it stood still: 240 days of them
EPOCH_MAX = 1 << 62  # that a newcomer joins: there is room above it
_SCALE, _OFFSET, _MARK_MAX = 1024, 8, 65_535


class HeadCount:
    __slots__ = ("_age", "_clock", "_due", "_running", "before", "config", "env", "epoch", "marks", "members")

    def __init__(self, env: Env, config: HeadCountConfig, members: Membership, clock: Callable[[], int]) -> None:
        self.env, self.config, self.members, self._clock = env, config, members, clock
        self.epoch = 0
        self.before = 0.0  # what the epoch before came to
        self.marks: tuple[int, ...] = ()
        self._running = 0.0
        self._age = 0  # intervals since our epoch began
        self._due = Periodic(env, config.count_interval_us, self._on_due)
        self._draw()

    def start(self) -> None:
        self._due.start()

    def stop(self) -> None:
        self._due.stop()

    @property
    def estimate(self) -> float:
        """Of the number of processes, ourselves included."""
        return max(self.before, self._running, 1.0)

    def _on_due(self) -> None:
        self._age += 1
        if self._age >= self.config.epoch_intervals:
            self._begin(self.epoch + 1)
        for peer in self.members.acquaintances(1):
            self.env.send(peer, Heads(self.epoch, self.marks, self._clock()))

    def on_heads(self, sender: NodeId, msg: Heads) -> None:
        if len(msg.marks) != len(self.marks):
            return  # of a process with other settings
        if msg.epoch > self.epoch:
            # Nobody can make us begin again and again, and so know nothing for ever; nor use up the numbers.
            early = self._age < self.config.epoch_intervals // 2 or msg.epoch > self.epoch + AHEAD_MAX
            if (self.before and early) or msg.epoch > EPOCH_MAX:
                return
            self._begin(msg.epoch)
        if msg.epoch == self.epoch:
            merged = tuple(map(max, self.marks, msg.marks))
            if merged != self.marks:
                self._learn(merged)
            if merged == msg.marks:
                return
        if not msg.answer:
            self.env.send(sender, Heads(self.epoch, self.marks, self._clock(), True))

    def _begin(self, epoch: int) -> None:
        self.before, self.epoch, self._age = self._running, epoch, 0
        self._draw()

    def _draw(self) -> None:
        random = self.env.rng.random
        drawn = (-log(1.0 - random()) or 1e-300 for _ in range(self.config.marks))
        self._learn(tuple([max(0, min(_MARK_MAX, int((_OFFSET - log(x)) * _SCALE))) for x in drawn]))

    def _learn(self, marks: tuple[int, ...]) -> None:
        self.marks = marks
        self._running = (len(marks) - 1) / sum([exp(_OFFSET - (mark + 0.5) / _SCALE) for mark in marks])
