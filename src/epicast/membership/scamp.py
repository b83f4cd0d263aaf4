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

What document 001 leaves open is as in the Scamp paper, but for one thing: arcs are conserved. Whoever loses an arc to
itself, because its lease ran out or the other end died, asks for one copy more; not always, as a join brings more arcs
than an end takes. The paper's renewed subscription would add c arcs a process with every lease. Some of those copies
start at somebody from long ago: islands that are content with themselves find the others that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.env import Env, Timer
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.ordered_set import OrderedSet
from epicast.core.periodic import Periodic
from epicast.core.records import Kind
from epicast.membership.round_trips import Probe, ProbeReply
from epicast.membership.scamp_messages import (
    Dropped,
    ForwardedSubscription,
    Heartbeat,
    Kept,
    ScampConfig,
    Subscription,
    Unsubscription,
    Welcome,
)
from epicast.membership.scamp_view import Views

__all__ = ["Scamp", "ScampConfig"]

HOPS_PER_MEMBER = 8  # of the contact's view
LOOKS = 8  # at what runs out, in one lease
CONTACTS_MAX = 64
COPIES_MAX = 8  # of one request for more of them: a process asks for one at a time
FEW = 2  # who knows fewer asks somebody from long ago, and knows that one too then
FAR_SHARE = 0.2  # of the copies that replace a lost arc start at somebody from long ago


class Scamp(Views):
    __slots__ = ("_asked", "_failed", "_heard_us", "_heartbeat", "_lease", "_met", "contacts", "left", "seeds")

    holds_links: ClassVar[bool] = True
    handles: ClassVar[tuple[type[Message], ...]] = (
        Subscription,
        ForwardedSubscription,
        Kept,
        Unsubscription,
        Dropped,
        Heartbeat,
        Welcome,
        Probe,
        ProbeReply,
    )

    def __init__(self, env: Env, config: ScampConfig) -> None:
        super().__init__(env, config)
        self.seeds: tuple[NodeId, ...] = ()  # whom we were told of at the start: never forgotten
        self.contacts: OrderedSet[NodeId] = OrderedSet()  # whom we were told of later, or knew once
        self.left = False
        self._asked: dict[
            NodeId, tuple[Timer, int]
        ] = {}  # through whom we subscribe, until it says so; with the copies
        self._failed: NodeId | None = None  # the last one that did not answer
        self._met: NodeId | None = None  # somebody that the driver has just found alive
        self._heard_us = 0  # when somebody last let us know that it knows us, or when we last asked for it
        self._heartbeat = Periodic(env, config.heartbeat_us, self._on_heartbeat_due) if config.heartbeat_us else None
        self._lease = Periodic(env, max(1, config.lease_us // LOOKS), self._on_lease_due) if config.lease_us else None

    # Calls

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.seeds = tuple(contact for contact in contacts[:CONTACTS_MAX] if contact != self.env.me)
        for periodic in (self._heartbeat, self._lease):
            if periodic is not None:
                periodic.start()
        self._subscribe()

    def meet(self, contact: NodeId) -> None:
        if contact == self.env.me or self.left:
            return
        self._remember(contact)
        if not len(self.view):
            self._subscribe()
        elif contact not in self.view and contact not in self.in_view:
            self._met = contact  # the next copy starts there: it may belong to another part of a parted overlay

    def _remember(self, contact: NodeId) -> None:
        contacts = self.contacts
        if contact in contacts:
            return
        if len(contacts) < CONTACTS_MAX:
            contacts.add(contact)
        else:
            contacts.replace(contacts.pick(self.env.rng), contact)

    def leave(self) -> None:
        """Whoever knows us gets one of those whom we know in our place, but for c + 1 of them: as many arcs as our own
        coming brought."""
        self.left = True
        self._stop()
        heirs, knowers = [(peer, self.arcs[peer].place) for peer in self.view], list(self.in_view)
        replaced = max(0, len(knowers) - int(self.config.copies) - 1) if heirs else 0
        for at, peer in enumerate(knowers):
            self.env.send(peer, Unsubscription((heirs[at % len(heirs)],) if at < replaced else ()))
            self._unknown_to(peer, gone=False)
        for peer in list(self.view):
            self.env.send(peer, Dropped())  # before the connection goes
            self._remove(peer, gone=False)

    def _stop(self) -> None:
        for periodic in (self._heartbeat, self._lease):
            if periodic is not None:
                periodic.stop()
        for timer, _ in self._asked.values():
            timer.cancel()
        self._asked.clear()
        if self.round_trips is not None:
            self.round_trips.stop()

    def widen(self) -> None:
        """A copy more, through somebody from long ago."""
        self._ask_for_copies(1, far=True)

    @property
    def news_us(self) -> int:
        return self.config.heartbeat_us

    def sign_of_life(self, peer: NodeId) -> None: ...

    def on_link_up(self, peer: NodeId) -> None: ...

    def on_link_down(self, peer: NodeId) -> None:
        self._failed = peer
        knew_us = self._unknown_to(peer, gone=True)
        if peer in self.view:
            self._remove(peer, gone=True)
        if not len(self.view):
            self._know_somebody()
        elif knew_us and self.env.rng.random() < self._replaced_share():
            self._ask_for_copies(1)

    def _replaced_share(self) -> float:
        """Of the arcs that a dead process had out. With it those to it are gone too, and a join brings only so many."""
        degree, target = max(1, len(self.view)), self.config.target_degree
        return 2 - target / degree if target else 1 - (self.config.copies + 1) / degree

    # Subscribing

    def _subscribe(self) -> None:
        """Through somebody we know, or knew once; not through the one that did not help the last time."""
        known = [*self.view, *self.in_view, *self.seeds, *self.contacts]
        known = [peer for peer in known if peer != self._failed] or known
        self._heard_us = self.env.now_us()
        under_way = any(not copies for _, copies in self._asked.values())
        if known and not self.left and not under_way:
            self._ask(self._one(known), 0)

    def _ask_for_copies(self, copies: int, *, far: bool = False) -> None:
        strangers = [peer for peer in (*self.seeds, *self.contacts) if peer not in self.view and peer != self._failed]
        met, self._met = self._met, None
        if not len(self.view):
            self._subscribe()
        elif met is not None and met not in self.view:
            self._ask(met, copies)
        elif strangers and (far or self.env.rng.random() < FAR_SHARE):
            self._ask(self._one(strangers), copies)
        else:
            self._ask(self.view.pick(self.env.rng), copies)

    def _ask(self, contact: NodeId, copies: int) -> None:
        if contact not in self._asked and len(self._asked) < CONTACTS_MAX:
            timer = self.env.after(self.config.reply_timeout_us, self._on_no_welcome, contact)
            self._asked[contact] = (timer, copies)
        self.env.send(contact, Subscription(self.env.place, copies))

    def on_subscription(self, sender: NodeId, msg: Subscription) -> None:
        if self.left:
            return
        self.env.send(sender, Welcome(self.env.place))
        if not msg.copies:
            self._known_to(sender, msg.place)  # it will have us in its view
        if not len(self.view) and not self._asked:
            self._keep(sender, msg.place)  # the second process ever (E-CLON-4)
            return
        self._spread(sender, msg.place, self._receivers(sender, msg.copies))

    def _spread(self, sender: NodeId, place: str, receivers: list[NodeId]) -> None:
        # Views here are likely to be as large as elsewhere: so many hops are enough for nearly all copies, and where
        # everybody knows the subject they are wasted.
        hops = min(self.config.hops_max, HOPS_PER_MEMBER * (len(self.view) + 1))
        for peer in receivers:
            self.env.send(peer, ForwardedSubscription(sender, hops, place))

    def _receivers(self, joiner: NodeId, wanted: int) -> list[NodeId]:
        """Of the copies of a subscription."""
        # Whom we are just asking ourselves is as good as known.
        others = [peer for peer in (self.view.items or self._asked) if peer != joiner]
        if not others:
            return [self.env.me]  # nobody but the joiner is known to us: the copy is ours
        copies = min(wanted, COPIES_MAX) or (self.config.target_degree - 1 if self.config.target_degree else 0)
        if copies:
            return [self._one(others) for _ in range(copies)]
        extra = int(self.config.copies)
        if self.env.rng.random() < self.config.copies - extra:
            extra += 1
        return others + [self._one(others) for _ in range(extra)]

    def on_welcome(self, sender: NodeId, msg: Welcome) -> None:
        asked = self._asked.pop(sender, None)
        if asked is None:
            return
        timer, copies = asked
        timer.cancel()
        if not copies or len(self.view) < FEW:
            self._add(sender, msg.place)  # it is there
            if copies:
                self.env.send(sender, Kept(self.env.place))

    def _on_no_welcome(self, contact: NodeId) -> None:
        """It is gone, or as lost as we are: through another one. It is not forgotten, for it may just be slow, and to
        those who have lost everybody it may be the only way back."""
        _, copies = self._asked.pop(contact)
        self._failed = contact
        if copies:
            self._ask_for_copies(copies, far=contact not in self.view)
        else:
            self._subscribe()

    # Copies

    def on_forwarded_subscription(self, sender: NodeId, msg: ForwardedSubscription) -> None:
        subject, hops_left = msg.subject, min(msg.hops_left, self.config.hops_max)  # whatever the one before us says
        if self.left:
            return
        can_keep = self._can_keep(subject)
        if can_keep and (self.accepts(msg) or not hops_left):
            self._keep(subject, msg.place)
            return
        others = [peer for peer in self.view if peer != subject]
        if subject != self.env.me:
            self._remember(subject)  # good to know if everybody else should die
        if hops_left and others:
            onward = self._onward(msg, others)
            self.env.send(onward, ForwardedSubscription(subject, hops_left - 1, msg.place, msg.kind))
        elif can_keep:
            self._keep(subject, msg.place)
        else:
            self.env.record(Kind.NONSENSE, subject, detail="a subscription that nobody can keep")

    def _onward(self, msg: ForwardedSubscription, others: list[NodeId]) -> NodeId:
        return self._one(others)

    def accepts(self, msg: ForwardedSubscription) -> bool:
        """Keep it here? The larger the view, the less likely (E-CLON-1)."""
        return int((len(self.view) + 1) * self.env.rng.random()) == 0

    def _can_keep(self, subject: NodeId) -> bool:
        return subject != self.env.me and subject not in self.view and len(self.view) < self.config.view_max

    def _keep(self, subject: NodeId, place: str) -> None:
        if self._can_keep(subject):
            self._add(subject, place)
            self.env.send(subject, Kept(self.env.place))

    def on_kept(self, sender: NodeId, msg: Kept) -> None:
        self._remember(sender)
        self._heard(sender, msg.place)

    def _heard(self, peer: NodeId, place: str | None = None) -> None:
        """From somebody who knows us."""
        if self.left:
            self.env.send(peer, Unsubscription())
            return
        self._heard_us = self.env.now_us()
        self._known_to(peer, place)

    # Leaving

    def on_unsubscription(self, sender: NodeId, msg: Unsubscription) -> None:
        self._unknown_to(sender, gone=True)
        self.contacts.discard(sender)
        if sender in self.view:
            self._remove(sender, gone=True)
            if msg.instead:
                self._keep(*msg.instead[0])
            self._know_somebody()

    def on_dropped(self, sender: NodeId, msg: Dropped) -> None:
        if self._unknown_to(sender, gone=False) and msg.ran_out and not self.left:
            self._ask_for_copies(1)

    # Heartbeats and leases

    def _on_heartbeat_due(self) -> None:
        silent_us = self.env.now_us() - self.config.isolated_us
        self._lose_silent(silent_us)
        self.env.send_many(self._links.items, Heartbeat(self.listener.positions()))
        if self._heard_us < silent_us:
            self._subscribe()

    def _lose_silent(self, since_us: int) -> None:
        """Whoever knows us says so all the time, and so does every neighbour where links are the same for both."""
        silent = [peer for peer, arc in self.in_view.items() if arc.said_us < since_us]
        if self.config.symmetric:
            silent += [peer for peer, arc in self.arcs.items() if arc.said_us < since_us and peer not in silent]
        for peer in silent:
            self.on_link_down(peer)

    def on_heartbeat(self, sender: NodeId, msg: Heartbeat) -> None:
        arc = self.arcs.get(sender) if self.config.symmetric else None
        if arc is not None:  # then it is our neighbour in any case, whether it knows us or not
            self._heard_us = arc.said_us = self.env.now_us()
        if arc is None or sender in self.in_view:
            self._heard(sender)
        if msg.positions and sender in self._links:
            self.listener.heard(sender, msg.positions, self.env.now_us())

    def _on_lease_due(self) -> None:
        """What has been there for long makes room. The subject then asks for a copy, which finds another place."""
        now = self.env.now_us()
        if 0 < len(self.view) < FEW:  # it came last, or only two are left that know each other
            self._ask_for_copies(1, far=True)
        for peer in [peer for peer, arc in self.arcs.items() if arc.ends_us <= now]:
            if self.listener.uses(peer):
                self.arcs[peer].ends_us = now + self.config.lease_us
                continue
            if len(self.view) == 1:
                self._replace_last(peer)
            if len(self.view) > 1:
                self.env.send(peer, Dropped(ran_out=True))
                self._remove(peer, gone=False)
                self._remember(peer)
            else:
                self.arcs[peer].ends_us = now + self.config.lease_us

    def _replace_last(self, peer: NodeId) -> None:
        """Rather somebody who knows us than nobody."""
        others = [knower for knower in self.in_view if knower != peer]
        if others:
            self._know(self._one(others))

    def _know_somebody(self) -> None:
        """Whoever knows us will do: then nobody need hear of us anew."""
        if not len(self.view) and not self.left:
            if self.in_view:
                self._know(self._one(list(self.in_view)))
            else:
                self._subscribe()

    def _know(self, knower: NodeId) -> None:
        self._add(knower, self.in_view[knower].place)
        self.env.send(knower, Kept(self.env.place))
