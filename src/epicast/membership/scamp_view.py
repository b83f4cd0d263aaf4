"""Whom a Scamp process knows and who knows it: two sets of arcs, with the place at the other end of each.

Dissemination runs over the arcs out; where links must be the same for both ends (`symmetric`), over the arcs in too.
"""

from __future__ import annotations

from collections.abc import Sequence

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.ordered_set import OrderedSet
from epicast.core.roles import Neighbours
from epicast.membership.distances import DISTANCE_MAX, parse_distances
from epicast.membership.round_trips import Probe, ProbeReply, RoundTrips
from epicast.membership.scamp_messages import ScampConfig

UNKNOWN = -1  # how far somebody is, until it or a round trip tells


class Arc:
    """To somebody that we know, or from somebody who knows us."""

    __slots__ = ("distance", "ends_us", "place", "said_us")

    def __init__(self, place: str, distance: int, now_us: int, ends_us: int) -> None:
        self.place, self.distance = place, distance
        self.said_us = now_us  # the last that we heard of it
        self.ends_us = ends_us


class Views:
    __slots__ = ("_links", "arcs", "config", "distances", "env", "in_view", "listener", "round_trips", "view")

    listener: Neighbours

    def __init__(self, env: Env, config: ScampConfig) -> None:
        self.env, self.config = env, config
        self.distances = parse_distances(config.distances)
        self.round_trips = RoundTrips(env, config.reply_timeout_us) if self.distances.measures else None
        self.view: OrderedSet[NodeId] = OrderedSet()
        self.arcs: dict[NodeId, Arc] = {}  # to the members of the view
        self.in_view: dict[NodeId, Arc] = {}  # from those who have us in theirs, as far as they told
        self._links: OrderedSet[NodeId] = OrderedSet() if config.symmetric else self.view

    def peers(self) -> Sequence[NodeId]:
        return self._links.items

    def sample(self, count: int) -> list[NodeId]:
        return self._links.sample(self.env.rng, count)

    def acquaintances(self, count: int) -> list[NodeId]:
        return self.sample(count)

    # How far others are

    def distance(self, peer: NodeId) -> int:
        arc = self.arcs.get(peer) or self.in_view.get(peer)
        return DISTANCE_MAX if arc is None or arc.distance == UNKNOWN else arc.distance

    def distance_of(self, peer: NodeId, place: str) -> int:
        """Of anybody; `UNKNOWN` before its round trip was measured."""
        found = self.distances.between(self.env.me, self.env.place, peer, place, self.rtt_us(peer))
        return UNKNOWN if found is None else found

    def rtt_us(self, peer: NodeId) -> int | None:
        return None if self.round_trips is None else self.round_trips.known.get(peer)

    def on_probe(self, sender: NodeId, msg: Probe) -> None:
        self.env.send(sender, ProbeReply(msg.sent_us))

    def on_probe_reply(self, sender: NodeId, msg: ProbeReply) -> None:
        if self.round_trips is not None:
            self.round_trips.on_reply(sender, msg)

    # Arcs

    def _new_arc(self, peer: NodeId, place: str | None) -> Arc:
        """None: nobody told yet where it is."""
        now, lease_us = self.env.now_us(), self.config.lease_us
        # Not all at the same time: those who joined together would also lose each other together.
        ends_us = now + int(lease_us * (0.75 + 0.5 * self.env.rng.random())) if lease_us else 0
        arc = Arc(place or "", UNKNOWN if place is None else self.distance_of(peer, place), now, ends_us)
        if self.round_trips is not None and arc.distance == UNKNOWN:
            self.round_trips.measure(peer, lambda _: self._on_measured(peer))
        return arc

    def _on_measured(self, peer: NodeId) -> None:
        for arc in (self.arcs.get(peer), self.in_view.get(peer)):
            if arc is not None:
                self._placed(peer, arc, arc.place)

    def _placed(self, peer: NodeId, arc: Arc, place: str) -> None:
        """It is known now where the other end is."""
        arc.place, arc.distance = place, self.distance_of(peer, place)

    def _add(self, peer: NodeId, place: str | None = "") -> None:
        """Into the view."""
        if peer != self.env.me and self.view.add(peer):
            self.arcs[peer] = self._new_arc(peer, place)
            self.env.open(peer)
            if not self.config.symmetric or self._links.add(peer):
                self.listener.neighbour_up(peer)

    def _remove(self, peer: NodeId, *, gone: bool) -> None:
        """Out of the view. The connection stays as long as the other side has us in its own."""
        self.view.discard(peer)
        del self.arcs[peer]
        still = peer in self.in_view and not gone
        if not still:
            self.env.close(peer)
        if not self.config.symmetric or (not still and self._links.discard(peer)):
            self.listener.neighbour_down(peer, gone)

    def _known_to(self, peer: NodeId, place: str | None = None) -> None:
        """It has us in its view."""
        arc = self.in_view.get(peer)
        if arc is not None:
            arc.said_us = self.env.now_us()
            if place is not None and place != arc.place:
                self._placed(peer, arc, place)
        elif len(self.in_view) < self.config.view_max:
            known = self.arcs.get(peer)
            self.in_view[peer] = self._new_arc(peer, known.place if known is not None and place is None else place)
            if self.config.symmetric and self._links.add(peer):
                self.listener.neighbour_up(peer)

    def _unknown_to(self, peer: NodeId, *, gone: bool) -> bool:
        """It has us in its view no longer; False if we did not know of it."""
        if self.in_view.pop(peer, None) is None:
            return False
        if self.config.symmetric and peer not in self.view and self._links.discard(peer):
            self.listener.neighbour_down(peer, gone)
        return True

    def _one(self, peers: Sequence[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]
