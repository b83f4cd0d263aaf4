"""CLON: Scamp that knows which neighbours are near (Matos et al.; document 001, chapter 4).

Copies of a subscription have a kind: most look for a process that is near the subject, a few for one that is far, so
that a view has most of its neighbours in its own area and some outside, and messages cross few long links. `wanted`
tells how many of each distance: `[7, 2]` for near and far, `[6, 2, 1]` with a region in between. A process for whom the
subject is of the copy's kind keeps it with Scamp's probability, 1/(n + 1) with n neighbours of that kind.

    joiner --Subscription--> contact --copies, each with a kind--> somebody for whom the joiner is of that kind

The split calibrates itself: the contact counts the joiner's own link to it, and the copies make up what is missing. The
document's way, one sort of copies and factors on the size of the view, depends on the number of areas, and the factors
that it gives hardly bias anything (E-CLON-14); `factors` brings it back. Kinds that nobody has seen yet get no copies,
so one area alone works like Scamp. Half-way through its hops a copy is kept by anybody: the first process of a new area
is near nobody.

Balancing (`balance_interval_us`): counts go on a random walk; whoever has over three times as many of a kind gives one
of them up, but never its last (E-CLON-17), and sends it on as a copy of that kind. As printed it would be an ordinary
copy, kept where it is *near*, and areas would lose all links to each other (E-CLON-18).
"""

from __future__ import annotations

from typing import ClassVar

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.periodic import Periodic
from epicast.membership.clon_messages import ClonConfig, Contact, ContactWanted, NodeInfo
from epicast.membership.contact_discovery import ContactDiscovery
from epicast.membership.scamp import Scamp
from epicast.membership.scamp_messages import ANY_KIND, Dropped, ForwardedSubscription
from epicast.membership.scamp_view import UNKNOWN, Arc

__all__ = ["Clon", "ClonConfig"]


def _dealt(shares: list[float], count: int, start: float) -> list[int]:
    """So many kinds, each as often as its share of all, rounded up or down by chance."""
    every, step = sum(shares), 0.0
    kinds: list[int] = []
    if not every:
        return [ANY_KIND] * count
    for kind, share in enumerate(shares):
        step += share * count / every
        while len(kinds) < count and len(kinds) + start < step:
            kinds.append(kind)
    return kinds + [len(shares) - 1] * (count - len(kinds))


class Clon(Scamp):
    __slots__ = ("_balance", "_discovery", "counts", "seen")

    handles: ClassVar[tuple[type[Message], ...]] = (*Scamp.handles, NodeInfo, ContactWanted, Contact)
    config: ClonConfig

    def __init__(self, env: Env, config: ClonConfig) -> None:
        super().__init__(env, config)
        self.counts = [0] * len(config.wanted)  # neighbours of each kind
        self.seen = [False] * len(config.wanted)  # has a subject of this kind ever come by?
        self._discovery = ContactDiscovery(self, config)
        interval_us = config.balance_interval_us
        self._balance = Periodic(env, interval_us, self._on_balance_due) if interval_us else None

    def start(self, contacts: tuple[NodeId, ...] | list[NodeId]) -> None:  # type: ignore[override]
        super().start(contacts)
        if self._balance is not None:
            self._balance.start()

    def _stop(self) -> None:
        super()._stop()
        self._discovery.stop()
        if self._balance is not None:
            self._balance.stop()

    # Kinds

    def _kind(self, distance: int) -> int:
        """Of a neighbour so far away; what is farther than the last kind belongs to it."""
        return min(distance, len(self.counts) - 1)

    def _add(self, peer: NodeId, place: str | None = "") -> None:
        known = peer in self.view
        super()._add(peer, place)
        if not known and peer in self.view:
            self._count(self.arcs[peer].distance, 1)

    def _remove(self, peer: NodeId, *, gone: bool) -> None:
        self._count(self.arcs[peer].distance, -1)
        super()._remove(peer, gone=gone)

    def _placed(self, peer: NodeId, arc: Arc, place: str) -> None:
        before = arc.distance
        super()._placed(peer, arc, place)
        if self.arcs.get(peer) is arc:
            self._count(before, -1)
            self._count(arc.distance, 1)

    def _count(self, distance: int, change: int) -> None:
        if distance != UNKNOWN:
            kind = self._kind(distance)
            self.counts[kind] += change
            self.seen[kind] = True

    # Copies

    def on_forwarded_subscription(self, sender: NodeId, msg: ForwardedSubscription) -> None:
        unknown = self.distance_of(msg.subject, msg.place) == UNKNOWN
        if not unknown or self.round_trips is None or msg.subject == self.env.me:
            super().on_forwarded_subscription(sender, msg)
        else:
            self.round_trips.measure(msg.subject, lambda rtt_us: self._on_subject_measured(sender, msg, rtt_us))

    def _on_subject_measured(self, sender: NodeId, msg: ForwardedSubscription, rtt_us: int | None) -> None:
        """A subject that does not answer is gone, and its copy with it."""
        if rtt_us is not None:
            super().on_forwarded_subscription(sender, msg)

    def _spread(self, sender: NodeId, place: str, receivers: list[NodeId]) -> None:
        distance = self.distance_of(sender, place)
        if distance != UNKNOWN or self.round_trips is None:
            self._spread_kinds(sender, place, receivers, distance)
        else:
            self.round_trips.measure(sender, lambda _: self._on_joiner_measured(sender, place, receivers))

    def _on_joiner_measured(self, sender: NodeId, place: str, receivers: list[NodeId]) -> None:
        self._spread_kinds(sender, place, receivers, self.distance_of(sender, place))

    def _spread_kinds(self, sender: NodeId, place: str, receivers: list[NodeId], distance: int) -> None:
        kinds = self._kinds(len(receivers), distance)
        for peer, kind in zip(receivers, kinds, strict=True):
            self.env.send(peer, ForwardedSubscription(sender, self.config.hops_max, place, kind))

    def _kinds(self, count: int, own: int) -> list[int]:
        """Of so many copies: together with the link that is there already they have the wanted shares."""
        if self.config.factors or own == UNKNOWN:
            return [ANY_KIND] * count
        own_kind = self._kind(own)
        self.seen[own_kind] = True
        wanted = [each if seen else 0 for each, seen in zip(self.config.wanted, self.seen, strict=True)]
        if count < self.config.target_degree - 1:
            own_kind, links = ANY_KIND, count  # a copy or two, not a join
        else:
            links = count + 1
        every = sum(wanted)
        if not every:
            return [ANY_KIND] * count
        shares = [max(0.0, each * links / every - (kind == own_kind)) for kind, each in enumerate(wanted)]
        return _dealt(shares, count, self.env.rng.random())

    def accepts(self, msg: ForwardedSubscription) -> bool:
        distance = self.distance_of(msg.subject, msg.place)
        if distance == UNKNOWN:
            return False
        kind, random = self._kind(distance), self.env.rng.random()
        self.seen[kind] = True
        if self.config.factors and msg.kind == ANY_KIND:
            return int(len(self.view) * self.config.factors[distance > 0] * random) == 0
        if msg.kind == ANY_KIND or 2 * msg.hops_left < self.config.hops_max:
            return int((len(self.view) + 1) * random) == 0
        return kind == msg.kind and int((self.counts[kind] + 1) * random) == 0

    def _onward(self, msg: ForwardedSubscription, others: list[NodeId]) -> NodeId:
        """Rather to somebody for whom the subject is of the copy's kind, as far as places tell."""
        if msg.kind != ANY_KIND and self.round_trips is None:
            between, arcs = self.distances.between, self.arcs
            fitting = [
                peer
                for peer in others
                if (distance := between(peer, arcs[peer].place, msg.subject, msg.place)) is not None
                and self._kind(distance) == msg.kind
            ]
            others = fitting or others
        return self._one(others)

    # Balancing

    def _on_balance_due(self) -> None:
        if len(self.view):
            counts = tuple(self.counts)
            self.env.send(self.view.pick(self.env.rng), NodeInfo(self.config.balance_walk - 1, counts))

    def on_node_info(self, sender: NodeId, msg: NodeInfo) -> None:
        if self.left or not len(self.view):
            return
        hops_left = min(msg.hops_left, self.config.balance_walk - 1)
        if hops_left:
            self.env.send(self.view.pick(self.env.rng), NodeInfo(hops_left - 1, msg.counts))
            return
        for kind, theirs in enumerate(msg.counts[: len(self.counts)]):
            if self.counts[kind] > max(3 * theirs, self._least(kind)):
                self._give_up_one(kind)

    def _least(self, kind: int) -> int:
        """So many stay whatever others say of themselves: half of those wanted, and never none (E-CLON-17)."""
        return max(1, self.config.wanted[kind] // 2)

    def _give_up_one(self, kind: int) -> None:
        uses, arcs = self.listener.uses, self.arcs
        candidates = [
            peer
            for peer in self.view
            if arcs[peer].distance != UNKNOWN and self._kind(arcs[peer].distance) == kind and not uses(peer)
        ]
        if len(candidates) > 1:
            peer = self._one(candidates)
            place = arcs[peer].place
            self.env.send(peer, Dropped())
            self._remove(peer, gone=False)
            onward = self.view.pick(self.env.rng)
            tag = kind if self.config.balance_kinds else ANY_KIND
            self.env.send(onward, ForwardedSubscription(peer, self.config.hops_max, place, tag))

    # Contacts from the local network

    def _subscribe(self) -> None:
        """At the start the local network is asked first; seeds are for the first process of an area."""
        if not self._discovery.begins():
            super()._subscribe()

    def subscribe_through_seeds(self) -> None:
        super()._subscribe()

    def on_contact_wanted(self, sender: NodeId, msg: ContactWanted) -> None:
        if not self.left:
            self._discovery.on_contact_wanted(sender, msg)

    def on_contact(self, sender: NodeId, msg: Contact) -> None:
        if not self.left:
            self._discovery.on_contact(msg)
