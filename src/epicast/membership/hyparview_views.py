"""HyParView, part 1: what a process knows of others, and how the views are kept within their limits."""

from __future__ import annotations

from collections.abc import Sequence

from epicast.core.chance import sample
from epicast.core.env import Env, Timer
from epicast.core.ids import NodeId
from epicast.core.message import Position
from epicast.core.ordered_set import OrderedSet
from epicast.core.roles import Neighbours
from epicast.membership.hyparview_messages import HyParViewConfig


class Pulse:
    """What keep-alives tell about one neighbour."""

    __slots__ = ("degree", "heard_us", "news", "news_us", "rtt_us")

    def __init__(self, heard_us: int) -> None:
        self.heard_us = heard_us
        self.rtt_us: int | None = None
        self.degree = 0
        self.news: tuple[Position, ...] = ()  # for the layer above, not passed on yet
        self.news_us = 0  # when it came


class Views:
    __slots__ = (
        "__weakref__",
        "active",
        "asked",
        "config",
        "contacts",
        "env",
        "exchanging",
        "joining",
        "left",
        "listener",
        "lost",
        "passive",
        "pulses",
        "refused",
        "size_max",
    )

    listener: Neighbours

    def __init__(self, env: Env, config: HyParViewConfig) -> None:
        self.env, self.config = env, config
        self.active: OrderedSet[NodeId] = OrderedSet()
        self.passive: OrderedSet[NodeId] = OrderedSet()
        self.lost: OrderedSet[NodeId] = OrderedSet()  # failed, as far as we know
        self.contacts: OrderedSet[NodeId] = OrderedSet()
        self.pulses: dict[NodeId, Pulse] = {}  # of the active view
        self.asked: dict[NodeId, Timer] = {}  # requests that wait for a reply
        self.refused: dict[NodeId, None] = {}  # since the last shuffle; members of the passive view
        self.joining: NodeId | None = None  # whom we asked to let us in, until somebody does
        self.exchanging: NodeId | None = None  # asked to take the place of another neighbour
        self.size_max = config.active_size_max
        self.left = False

    def _add_passive(self, peer: NodeId, spare: list[NodeId] | None = None) -> None:
        """In a full view it takes the place of one of the `spare`, or of anyone."""
        if peer == self.env.me or peer in self.active or peer in self.passive:
            return
        if len(self.passive.items) < self.config.passive_size:
            self.passive.add(peer)
            return
        victim = spare.pop() if spare else self.passive.pick(self.env.rng)
        self.passive.replace(victim, peer)
        if self.refused:
            self.refused.pop(victim, None)

    def _forget(self, peer: NodeId) -> None:
        self.passive.discard(peer)
        self.refused.pop(peer, None)

    def _remember_lost(self, peer: NodeId) -> None:
        self.refused.pop(peer, None)
        if peer in self.active or peer in self.lost:
            return
        if len(self.lost) >= self.config.lost_size:
            self.lost.discard(self.lost.pick(self.env.rng))
        self.lost.add(peer)

    def _onward(self, sender: NodeId, subject: NodeId) -> NodeId | None:
        """Where a walk goes next: a random neighbour, but not back and not to the process that it is about."""
        items = self.active.items
        for _ in range(4):  # nearly always enough, and quicker than building the list of all candidates
            if items:
                peer = items[int(self.env.rng.random() * len(items))]
                if peer not in (sender, subject):
                    return peer
        others = [peer for peer in items if peer not in (sender, subject)]
        return self._one(others) if others else None

    def _one(self, peers: Sequence[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]

    def _some(self, peers: Sequence[NodeId], count: int) -> list[NodeId]:
        return sample(self.env.rng, peers, count)
