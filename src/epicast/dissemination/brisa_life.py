"""BRISA, part 5: is the source of a flow still up? A flow ends with its source, whether that left or crashed.

Positions tell how long ago there was a sign of life of the source. The source itself tells 0, everybody else the
youngest age that it has heard of, which counts as one second older on each link. So ages are spread by keep-alives,
without a message of their own; a source that is silent but up stays young everywhere; and without it ages only grow,
whoever tells whom, in trees, in cycles and among processes that have no parent.

    up --not heard of for `stale_us`--> gone: no path to it is believed, nobody is asked for one, publishers move away
    gone --not heard of for `forget_us`--> forgotten; on a neighbour's word it is met again only if half as old or less

A process that finds no parent for `gone_us` takes the source for gone as well, be it out of reach only: it waits until
a neighbour tells of a path.
"""

from __future__ import annotations

from collections.abc import Iterable

from epicast.core.env import Env
from epicast.core.message import Position
from epicast.core.roles import Membership
from epicast.dissemination.brisa_flow import AGE_UNIT_US, FlowState
from epicast.dissemination.brisa_messages import BrisaConfig

GONE_NEWS = 30  # keep-alives; a sign of life crosses 1,000 processes with views of 4 in 17, see brisa.md


class SignsOfLife:
    __slots__ = ("_turns", "config", "env", "members")

    def __init__(self, env: Env, config: BrisaConfig, members: Membership) -> None:
        self.env, self.config, self.members = env, config, members
        self._turns = 1  # how many keep-alives it takes to tell of all flows

    def is_stale(self, age: int) -> bool:
        """Is a source gone that was heard of so long ago? Paths to it are ghosts then: those who have lost it would
        adopt each other on such paths, which lead through ever more of them, until they are too long."""
        return self.members.news_us > 0 and age * AGE_UNIT_US > self.stale_us()

    def stale_us(self) -> int:
        """A sign of life takes a while to get everywhere, the longer, the more rarely neighbours tell."""
        news_us = self.members.news_us
        return max(self.config.gone_us, GONE_NEWS * news_us) + 2 * self._turns * news_us

    def is_gone(self, flow: FlowState) -> bool:
        """We have no parent, and the source is gone or beyond our reach. Then we ask nobody any more, and wait to hear
        of a neighbour with a path, until the flow is forgotten."""
        now, repair = self.env.now_us(), flow.repair
        return repair is not None and (repair.since_us <= now - self.config.gone_us or self.is_stale(flow.age(now)))

    def is_over(self, flow: FlowState, now_us: int) -> bool:
        """Was there no sign of its source for a long time? Where no neighbour tells its position, as in an overlay
        without keep-alives, silence means nothing as long as the link to the parent is up."""
        if flow.age(now_us) * AGE_UNIT_US < self.config.forget_us:
            return False
        return flow.parent is None or flow.evidence.parent_told_us > now_us - self.config.forget_us

    def may_meet(self, position: Position) -> bool:
        """A flow that a neighbour tells of: not if others forget it about now. Those who have forgotten it and those
        who have not would bring it back to each other for ever."""
        return 2 * position.age * AGE_UNIT_US < self.config.forget_us

    def worth_telling(self, flows: Iterable[FlowState]) -> list[FlowState]:
        """Not those of sources that are gone, once everybody could have got what such a source published last; and not
        those that we know by hearsay."""
        me, quiet_us = self.env.me, self.env.now_us() - 2 * self.stale_us()
        told = [
            flow
            for flow in flows
            if not flow.hearsay and (flow.parent is not None or flow.heard_us > quiet_us or flow.root == me)
        ]
        self._turns = max(1, -(-len(told) // self.config.positions_max))
        return told
