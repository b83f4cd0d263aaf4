"""Scamp: views that find their size by themselves (Ganesh, Kermarrec, Massoulie; document 001, section 2.2.1).

A joiner sends a subscription to a contact, which spreads a copy to everyone in its view and a few more to some of them.
A process that gets a copy keeps it, puts the joiner into its view, with probability 1/(view + 1); otherwise it hands
the copy on. So every copy becomes one arc, and nobody needs to know how many processes there are.

    outside --Subscription--> one arc out --copies are kept--> known --silence--> isolated --Subscription--> ...

Views are directed: `view` holds whom we know, `in_view` who knows us, as far as they told.

The degree that comes of it (E-CLON-2): a join adds |view of the contact| + c + 1 arcs, hence a mean of about
(c + 1) ln N, and not log10 N + c. With `target_degree` every join adds just so many arcs.

Errata obeyed: the printed precedence keeps nothing (E-CLON-1); nobody keeps itself or anyone twice, and a copy that
nobody can keep ends after `hops_max` (E-CLON-3); the second process ever is taken in by the first (E-CLON-4).

What document 001 leaves open is as in the Scamp paper, but for one thing: a renewed subscription has as many copies as
there are arcs to us that will run out. The paper's rule would add c arcs a process with every lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.ordered_set import OrderedSet
from epicast.core.periodic import Periodic
from epicast.core.records import Kind
from epicast.core.roles import Neighbours
from epicast.membership.scamp_messages import (
    Dropped,
    ForwardedSubscription,
    Heartbeat,
    Kept,
    ScampConfig,
    Subscription,
    Unsubscription,
)

__all__ = ["Scamp", "ScampConfig"]

RENEWALS = 4  # looks at what runs out, in one lease
CONTACTS_MAX = 64


class Knower:
    """Somebody who has us in its view."""

    __slots__ = ("renewed", "said_us", "since_us")

    def __init__(self, now_us: int) -> None:
        self.since_us = self.said_us = now_us
        self.renewed = False  # another arc was asked for, since this one is about to run out


class Scamp:
    __slots__ = (
        "_asked",
        "_heard_us",
        "_heartbeat",
        "_lease",
        "config",
        "contacts",
        "env",
        "in_view",
        "left",
        "listener",
        "since_us",
        "view",
    )

    handles: ClassVar[tuple[type[Message], ...]] = (
        Subscription,
        ForwardedSubscription,
        Kept,
        Unsubscription,
        Dropped,
        Heartbeat,
    )
    listener: Neighbours

    def __init__(self, env: Env, config: ScampConfig) -> None:
        self.env, self.config = env, config
        self.view: OrderedSet[NodeId] = OrderedSet()
        self.since_us: dict[NodeId, int] = {}  # when an entry of the view came in
        self.in_view: dict[NodeId, Knower] = {}  # who has us in its view, as far as they told
        self.contacts: OrderedSet[NodeId] = OrderedSet()  # also whom we knew once
        self.left = False
        self._asked: NodeId | None = None  # through whom we subscribed, until somebody lets us know that it worked
        self._heard_us = 0  # the last heartbeat, or the last time that we asked to be known
        self._heartbeat = Periodic(env, config.heartbeat_us, self._on_heartbeat_due) if config.heartbeat_us else None
        self._lease = Periodic(env, max(1, config.lease_us // RENEWALS), self._renew) if config.lease_us else None

    # Calls

    def start(self, contacts: Sequence[NodeId]) -> None:
        for contact in contacts[:CONTACTS_MAX]:
            if contact != self.env.me:
                self.contacts.add(contact)
        for periodic in (self._heartbeat, self._lease):
            if periodic is not None:
                periodic.start()
        self._subscribe()

    def meet(self, contact: NodeId) -> None:
        if contact == self.env.me or self.left or contact in self.contacts:
            return
        self._remember(contact)
        if not len(self.view):
            self._subscribe()

    def _remember(self, contact: NodeId) -> None:
        if contact not in self.contacts and len(self.contacts) >= CONTACTS_MAX:
            self.contacts.discard(self.contacts.pick(self.env.rng))
        self.contacts.add(contact)

    def leave(self) -> None:
        """Whoever knows us gets one of those whom we know in our place, but for c + 1 of them: as many arcs as our own
        coming brought."""
        self.left = True
        for periodic in (self._heartbeat, self._lease):
            if periodic is not None:
                periodic.stop()
        heirs, knowers = self.view.items, list(self.in_view)
        replaced = max(0, len(knowers) - int(self.config.copies) - 1) if heirs else 0
        for at, peer in enumerate(knowers):
            self.env.send(peer, Unsubscription((heirs[at % len(heirs)],) if at < replaced else ()))
        for peer in list(self.view):
            self.env.send(peer, Dropped())
            self._remove(peer, gone=False)
        self.in_view.clear()

    def peers(self) -> Sequence[NodeId]:
        return self.view.items

    def sample(self, count: int) -> list[NodeId]:
        return self.view.sample(self.env.rng, count)

    def rtt_us(self, peer: NodeId) -> int | None:
        return None

    def widen(self) -> None:
        """Nobody farther away is known: a new subscription brings us to the notice of others."""
        self._subscribe()

    def sign_of_life(self, peer: NodeId) -> None: ...

    def on_link_up(self, peer: NodeId) -> None: ...

    def on_link_down(self, peer: NodeId) -> None:
        self.in_view.pop(peer, None)
        if peer in self.view:
            self._remove(peer, gone=True)
            if not len(self.view):
                self._subscribe()

    # Subscribing

    def _subscribe(self) -> None:
        """Through somebody we know, or knew once; not through the one that did not help the last time."""
        known = [*self.view, *self.in_view, *self.contacts]
        known = [peer for peer in known if peer != self._asked] or known
        self._heard_us = self.env.now_us()
        if known and not self.left:
            self._asked = self._one(known)
            self._add(self._asked)
            self.env.send(self._asked, Subscription())

    def on_subscription(self, sender: NodeId, msg: Subscription) -> None:
        if self.left:
            return
        self._known_to(sender)
        if not len(self.view):
            self._keep(sender)  # the second process ever (E-CLON-4)
            return
        for peer in self._receivers(sender, msg.copies):
            self.env.send(peer, ForwardedSubscription(sender, self.config.hops_max))

    def _receivers(self, joiner: NodeId, wanted: int) -> list[NodeId]:
        """Of the copies of a subscription."""
        others = [peer for peer in self.view if peer != joiner]
        if not others:
            return [self.env.me]  # nobody but the joiner is known to us: the copy is ours
        copies = wanted or (self.config.target_degree - 1 if self.config.target_degree else 0)
        if copies:
            return [self._one(others) for _ in range(copies)]
        extra = int(self.config.copies)
        if self.env.rng.random() < self.config.copies - extra:
            extra += 1
        return others + [self._one(others) for _ in range(extra)]

    def on_forwarded_subscription(self, sender: NodeId, msg: ForwardedSubscription) -> None:
        subject = msg.subject
        if self.left:
            return
        can_keep = self._can_keep(subject)
        if can_keep and (self.accepts(subject) or not msg.hops_left):
            self._keep(subject)
            return
        others = [peer for peer in self.view if peer != subject]
        if msg.hops_left and others:
            self.env.send(self._one(others), ForwardedSubscription(subject, msg.hops_left - 1))
        elif can_keep:
            self._keep(subject)
        else:
            self.env.record(Kind.NONSENSE, subject, detail="a subscription that nobody can keep")

    def accepts(self, subject: NodeId) -> bool:
        """Keep it here? The larger the view, the less likely (E-CLON-1)."""
        return int((len(self.view) + 1) * self.env.rng.random()) == 0

    def _can_keep(self, subject: NodeId) -> bool:
        return subject != self.env.me and subject not in self.view and len(self.view) < self.config.view_max

    def _keep(self, subject: NodeId) -> None:
        if self._can_keep(subject):
            self._add(subject)
            self.env.send(subject, Kept())

    def on_kept(self, sender: NodeId, msg: Kept) -> None:
        self._known_to(sender)

    def _known_to(self, peer: NodeId) -> None:
        if self.left:
            self.env.send(peer, Unsubscription())
            return
        knower, now = self.in_view.get(peer), self.env.now_us()
        self._heard_us, self._asked = now, None
        if knower is not None:
            knower.said_us = now
        elif len(self.in_view) < self.config.view_max:
            self.in_view[peer] = Knower(now)

    # Leaving

    def on_unsubscription(self, sender: NodeId, msg: Unsubscription) -> None:
        self.in_view.pop(sender, None)
        self.contacts.discard(sender)
        if sender in self.view:
            self._remove(sender, gone=True)
            if msg.instead:
                self._keep(msg.instead[0])

    def on_dropped(self, sender: NodeId, msg: Dropped) -> None:
        self.in_view.pop(sender, None)

    # Heartbeats and leases

    def _on_heartbeat_due(self) -> None:
        now = self.env.now_us()
        self.env.send_many(self.view.items, Heartbeat())
        if now - self._heard_us > self.config.isolated_us:
            if self._asked is not None and self._asked in self.view:
                self._remove(self._asked, gone=True)  # it is gone, or as isolated as we are
            self._subscribe()

    def on_heartbeat(self, sender: NodeId, msg: Heartbeat) -> None:
        self._known_to(sender)

    def _renew(self) -> None:
        """Arcs run out after a lease. For each to us that is about to, one copy of a new subscription makes another."""
        now, lease_us = self.env.now_us(), self.config.lease_us
        self._expire(now - lease_us)
        soon_us = now - lease_us + 2 * lease_us // RENEWALS
        ending = [each for each in self.in_view.values() if each.since_us < soon_us and not each.renewed]
        for each in ending:
            each.renewed = True
        if ending and len(self.view):
            self.env.send(self.view.pick(self.env.rng), Subscription(copies=len(ending)))

    def _expire(self, before_us: int) -> None:
        for peer, since_us in list(self.since_us.items()):
            if since_us >= before_us:
                continue
            if len(self.view) == 1 and self.in_view:
                self._add(self._one(list(self.in_view)))  # rather somebody who knows us than nobody
            if len(self.view) > 1:
                self._remove(peer, gone=False)
                self._remember(peer)
                self.env.send(peer, Dropped())
        for peer, knower in list(self.in_view.items()):
            if knower.said_us < before_us:
                del self.in_view[peer]

    # The view

    def _add(self, peer: NodeId) -> None:
        if peer != self.env.me and self.view.add(peer):
            self.since_us[peer] = self.env.now_us()
            self.env.open(peer)
            self.listener.neighbour_up(peer)

    def _remove(self, peer: NodeId, *, gone: bool) -> None:
        self.view.discard(peer)
        del self.since_us[peer]
        self.env.close(peer)
        self.listener.neighbour_down(peer, gone)

    def _one(self, peers: Sequence[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]
