"""BRISA, part 4: which of several neighbours is the best parent, and whether it is worth a change.

*First-come* takes the neighbour nearest to the source, since its copy would most likely have been first, and never
changes. *Near-first* takes one from a nearer place. *Delay-aware* compares how long a message takes from the source to
us: each process tells how long it takes to itself, and half the round trip to the neighbour comes on top. The paper
compares the last hop alone (E-B16); then short hops are added to short hops until the tree is a chain.

Estimates waver, and all who hear the same news would move at once. So a change must gain a tenth of the delay, and at
least `gain_us`; it waits its turn, drawn by chance; and then the next one waits for `settle_us`. A process changes only
for a neighbour that is nearer to the source than it is itself, which its descendants are not.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from epicast.core.message import DELAY_UNKNOWN
from epicast.core.roles import Membership
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_messages import BrisaConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epicast.core.ids import NodeId

DELAY_UNIT_US = 100  # in which positions tell delays
GAIN_SHARE = 0.1
TURN = {
    "near-first": 0.5,
    "delay-aware": 0.25,
}  # the chance to look for a better parent, each watch period; our guesses


class Strategy:
    __slots__ = ("config", "members", "name")

    def __init__(self, config: BrisaConfig, members: Membership) -> None:
        self.config, self.members, self.name = config, members, config.strategy

    # What neighbours are told

    def delay(self, flow: FlowState) -> int:
        """How long messages take from the source to us, in units; 0 where nobody compares delays."""
        if self.name != "delay-aware" or len(flow.path) == 1:
            return 0
        delay_us = self.delay_through(flow, flow.parent) if flow.parent is not None else inf
        return DELAY_UNKNOWN if delay_us == inf else min(DELAY_UNKNOWN - 1, round(delay_us / DELAY_UNIT_US))

    def delay_through(self, flow: FlowState, peer: NodeId) -> float:
        position, rtt_us = flow.known.get(peer), self.members.rtt_us(peer)
        if position is None or position.delay == DELAY_UNKNOWN or rtt_us is None:
            return inf
        return position.delay * DELAY_UNIT_US + rtt_us / 2

    # Choosing

    def best(self, flow: FlowState, candidates: Sequence[NodeId]) -> NodeId:
        if self.name == "delay-aware":
            return min(candidates, key=lambda peer: (self.delay_through(flow, peer), self._rtt(peer), peer))
        if self.name == "near-first":
            far = self.members.distance
            return min(candidates, key=lambda peer: (far(peer), len(flow.known[peer].path), peer))
        return min(candidates, key=lambda peer: (len(flow.known[peer].path), self._rtt(peer), peer))

    def nearer(self, peer: NodeId, parent: NodeId) -> bool:
        """Is it in a nearer place than our parent?"""
        return self.name == "near-first" and self.members.distance(peer) < self.members.distance(parent)

    def may_look(self, flow: FlowState, now_us: int, chance: float) -> bool:
        """Is it our turn to look for a better parent?"""
        if chance >= TURN.get(self.name, 0.0):
            return False
        return self.name == "near-first" or now_us - flow.switch_us >= self.config.settle_us

    def worth_changing_for(self, flow: FlowState, candidates: Sequence[NodeId]) -> list[NodeId]:
        """Those among them that are much better than our parent."""
        parent = flow.parent
        assert parent is not None
        if self.name == "near-first":
            return [peer for peer in candidates if self.nearer(peer, parent)]
        ours_us = self.delay_through(flow, parent)
        if ours_us == inf:
            return []  # the round trip to our parent is not known yet
        enough_us = ours_us - max(self.config.gain_us, GAIN_SHARE * ours_us)
        return [peer for peer in candidates if self.delay_through(flow, peer) < enough_us]

    def _rtt(self, peer: NodeId) -> float:
        rtt_us = self.members.rtt_us(peer)
        return inf if rtt_us is None else rtt_us
