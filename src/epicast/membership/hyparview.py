"""HyParView: a small symmetric active view to talk over, a large passive view to repair it from (Leitao et al., DSN
2007), with the expansion factor that BRISA's authors added.

    joining --NeighbourReply(accepted)--> member --leave()--> left
    a neighbour: asked --accepted--> active --Disconnect, silence, link down--> passive, lost or forgotten

The active view aims at `active_size` and may grow to `active_size * expansion` (H-I2); a link lost while at least
`active_size` remain is not replaced (H-I3), which spares the chain reaction of evictions at start-up. Active views are
symmetric at quiescence (H-I1): links are made by request and reply, and a keep-alive from somebody who is no neighbour
ends in a link on both sides or on none.

Errata obeyed: replacements are promoted from the *passive* view (E-H1); a joiner is given `active_size` neighbours
even by a contact that has more (E-H2); a join walk ends where it cannot go on, full views evict before they insert,
and every insertion is made symmetric by a message (E-CLON-6 to E-CLON-10).

Departures: links above target at both ends, and that no flow uses, are shed one by one, or start-up would leave
the mean degree at twice the target (H-I4 wants it near the target). Failed peers are probed now and then: two halves
of a healed partition that purged each other from their views would otherwise never meet again. Once in a while, or
when the layer above asks for it, a link to a random passive peer is added. A process whose neighbours know only each
other hears no shuffle walk from farther away: then it exchanges a neighbour for a passive peer. An added link would be
shed again, since in such an island it alone is above target. So islands of satisfied processes cannot last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.chance import sample
from epicast.core.env import Env
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.periodic import Periodic
from epicast.membership.hyparview_links import LinkKeeper
from epicast.membership.hyparview_messages import (
    Disconnect,
    ForwardJoin,
    HyParViewConfig,
    Join,
    KeepAlive,
    KeepAliveAck,
    Neighbour,
    NeighbourReply,
    Priority,
    Shuffle,
    ShuffleReply,
)

__all__ = ["HyParView", "HyParViewConfig"]


class HyParView(LinkKeeper):
    __slots__ = ("_beats", "_keep_alive", "_shuffle", "_shuffles", "inward", "probed")

    holds_links: ClassVar[bool] = True
    handles: ClassVar[tuple[type[Message], ...]] = (
        Join,
        ForwardJoin,
        Neighbour,
        NeighbourReply,
        Disconnect,
        Shuffle,
        ShuffleReply,
        KeepAlive,
        KeepAliveAck,
    )

    def __init__(self, env: Env, config: HyParViewConfig) -> None:
        super().__init__(env, config)
        self.probed: NodeId | None = None  # a passive peer that we shuffle with, until it answers
        self._keep_alive = Periodic(env, config.keep_alive_us, self._on_keep_alive_due)
        self._shuffle = Periodic(env, config.shuffle_interval_us, self._on_shuffle_due)
        self._shuffles = self._beats = 0
        self.inward = 0  # shuffle periods since a walk came from farther away than our neighbours

    # Calls

    def start(self, contacts: Sequence[NodeId]) -> None:
        for contact in contacts:
            if contact != self.env.me:
                self.contacts.add(contact)
        self._keep_alive.start()
        self._shuffle.start()
        self._join()

    def meet(self, contact: NodeId) -> None:
        """Asked at once if we are alone. Otherwise it is probed like every contact, which joins islands that do not
        know of each other. Contacts come and go: at the cap any of the old ones goes."""
        if contact == self.env.me or self.left or contact in self.contacts:
            return
        if len(self.contacts) >= self.config.lost_size:
            self.contacts.discard(self.contacts.pick(self.env.rng))
        self.contacts.add(contact)
        if not len(self.active) and self.joining is None:
            self._join()

    def leave(self) -> None:
        self.left = True
        self._keep_alive.stop()
        self._shuffle.stop()
        self.env.send_many(self.active.items, Disconnect(leaving=True))
        for peer in list(self.active):
            self._drop(peer, gone=False)
        for timer in self.asked.values():
            timer.cancel()
        self.asked.clear()

    def peers(self) -> Sequence[NodeId]:
        return self.active.items

    def sample(self, count: int) -> list[NodeId]:
        return self.active.sample(self.env.rng, count)

    def acquaintances(self, count: int) -> list[NodeId]:
        """The passive view is renewed all the time, the active one is not."""
        return sample(self.env.rng, [*self.active.items, *self.passive.items], count)

    def rtt_us(self, peer: NodeId) -> int | None:
        pulse = self.pulses.get(peer)
        return pulse.rtt_us if pulse else None

    @property
    def news_us(self) -> int:
        return self.config.keep_alive_us

    def sign_of_life(self, peer: NodeId) -> None:
        pulse = self.pulses.get(peer)
        if pulse is not None:
            pulse.heard_us = self.env.now_us()

    def distance(self, peer: NodeId) -> int:
        return 0

    def widen(self) -> None:
        self._ask_far(Priority.HIGH)

    def _ask_far(self, priority: Priority) -> NodeId | None:
        """Ask a passive peer for one more link. It is most likely farther away than our neighbours' neighbours."""
        candidates = [p for p in self.passive if p not in self.asked and p not in self.refused]
        if not candidates or self.left:
            return None
        peer = self._one(candidates)
        self._ask(peer, Neighbour(priority))
        return peer

    # Shuffling: keeps the passive view fresh

    def _on_shuffle_due(self) -> None:
        self.refused.clear()
        self._probe_lost()
        self._fill()
        self.inward += 1
        if self.inward == self.config.island_periods:
            self.inward = 0
            self.exchanging = self._ask_far(Priority.HIGH)
        elif self.env.rng.random() < self.config.refresh:
            self._ask_far(Priority.LOW)
        # In turns: at the end of a walk over active links, and with somebody of the passive view itself.
        self._shuffles += 1
        if self._shuffles % 2:
            self._send_shuffle()
        else:
            self._probe_passive()

    def _send_shuffle(self) -> None:
        if len(self.active):
            peer = self.active.pick(self.env.rng)
            self.env.send(peer, Shuffle(self.env.me, self.config.shuffle_walk_length, self._shuffle_sample()))

    def _shuffle_sample(self) -> tuple[NodeId, ...]:
        active = self.active.sample(self.env.rng, self.config.shuffle_active)
        passive = self.passive.sample(self.env.rng, self.config.shuffle_passive)
        return (self.env.me, *active, *passive)

    def on_shuffle(self, sender: NodeId, msg: Shuffle) -> None:
        if self.left or msg.origin == self.env.me:
            return
        if sender in self.active and msg.origin not in self.active:
            self.inward = 0
        ttl = min(msg.ttl, self.config.shuffle_walk_length)  # no walk is longer for what its origin says
        if ttl > 0:
            onward = self._onward(sender, msg.origin)
            if onward is not None:
                self.env.send(onward, Shuffle(msg.origin, ttl - 1, msg.sample))
                return
        count = min(len(msg.sample), self.config.passive_size)
        answer = tuple(self.passive.sample(self.env.rng, count))
        # In a small overlay everyone is active and the passive views are empty: tell of neighbours then.
        more = tuple(self.active.sample(self.env.rng, count - len(answer))) if len(answer) < count else ()
        self.env.send(msg.origin, ShuffleReply(answer + more))
        self._merge(msg.sample, answer)

    def on_shuffle_reply(self, sender: NodeId, msg: ShuffleReply) -> None:
        if self.left:
            return
        if sender == self.probed:
            self.probed = None
        if sender in self.lost:
            self._found(sender)
        elif sender in self.contacts:
            self._add_passive(sender)  # a link to everyone who was a contact once would wear out the active views
        self._merge(msg.sample, ())

    def _merge(self, sample: Sequence[NodeId], given_away: Sequence[NodeId]) -> None:
        """Take in what the other side sent; in a full view it replaces first what the other side now has."""
        spare = list(given_away)
        for peer in sample[: self.config.passive_size]:
            self._add_passive(peer, spare)

    def _probe_lost(self) -> None:
        """Ask a peer that we gave up, or a contact, whether it is there; its answer is a `ShuffleReply`."""
        candidates = [p for p in (*self.lost, *self.contacts) if p not in self.active and p not in self.passive]
        if candidates:
            self.env.send(self._one(candidates), Shuffle(self.env.me, 0, self._shuffle_sample()))

    def _probe_passive(self) -> None:
        """Shuffle with a random process of the passive view itself: keeps the view fresh across the whole overlay, and
        finds the dead in it."""
        if self.probed is not None:
            self._forget(self.probed)  # it did not answer the last time
            self._remember_lost(self.probed)
            self.probed = None
        if len(self.passive):
            self.probed = self.passive.pick(self.env.rng)
            self.env.send(self.probed, Shuffle(self.env.me, 0, self._shuffle_sample()))

    def _found(self, peer: NodeId) -> None:
        """A peer given up for dead answers: it may be our only bridge across a healed partition."""
        self.lost.discard(peer)
        self._add_passive(peer)
        if peer in self.active or peer in self.asked:
            return
        if len(self.active) < self.size_max:
            self._ask(peer, Neighbour(Priority.LOW))
        elif self.size_max == self.config.active_size and len(self._unused()) == len(self.active):
            # Full views stay full where they may not grow: both halves would refuse each other's requests for ever.
            # With trees, orphans ask for other neighbours (`widen`), and an exchange here would break branches.
            self.exchanging = peer
            self._ask(peer, Neighbour(Priority.HIGH))

    # Keep-alives: failure detection, round-trip times, and news from the layer above

    def _on_keep_alive_due(self) -> None:
        now = self.env.now_us()
        self._listen(now - self.config.silence_us)
        degree, target = len(self.active.items), self.config.active_size
        if degree < target:
            self._fill()
            if not self.asked:  # we know too few to ask
                self._send_shuffle()
        elif degree > target:
            self._shed()
        sent_us = now if self._wants_answers() else 0
        self.env.send_many(self.active.items, KeepAlive(sent_us, len(self.active.items), self.listener.positions()))

    def _wants_answers(self) -> bool:
        """That a neighbour lives is told by its own keep-alives. Answers tell how far away it is: now and then, and as
        long as we do not know."""
        self._beats += 1
        return self._beats % self.config.rtt_every == 0 or any(pulse.rtt_us is None for pulse in self.pulses.values())

    def _listen(self, since_us: int) -> None:
        """Pass on what the neighbours told, and lose those that have been silent. All at once: it is not urgent, and
        the layer above then touches its own state once a period."""
        heard = self.listener.heard
        silent: list[NodeId] = []
        for peer, pulse in list(self.pulses.items()):
            if pulse.heard_us < since_us:
                silent.append(peer)
            elif pulse.news:
                news, pulse.news = pulse.news, ()
                heard(peer, news, pulse.news_us)
        for peer in silent:
            self._lose(peer)

    def _shed(self) -> None:
        """One link fewer where both ends have more than they want. Not at once: the other end may be about to do so."""
        target = self.config.active_size
        if self.env.rng.random() >= self.config.shed:
            return
        surplus = [peer for peer in self._unused() if self.pulses[peer].degree > target]
        if surplus:
            self._evict(self._one(surplus))

    def on_keep_alive(self, sender: NodeId, msg: KeepAlive) -> None:
        pulse = self.pulses.get(sender)
        if pulse is None:
            self._hear_stranger(sender)
            return
        pulse.heard_us = pulse.news_us = self.env.now_us()
        pulse.degree = msg.degree
        if msg.sent_us:
            self.env.send(sender, KeepAliveAck(msg.sent_us))
        pulse.news = msg.positions

    def on_keep_alive_ack(self, sender: NodeId, msg: KeepAliveAck) -> None:
        pulse = self.pulses.get(sender)
        now = self.env.now_us()
        if pulse is None or msg.sent_us > now:
            return
        pulse.heard_us = now
        rtt = now - msg.sent_us
        pulse.rtt_us = rtt if pulse.rtt_us is None else (7 * pulse.rtt_us + rtt) // 8

    def _hear_stranger(self, sender: NodeId) -> None:
        """Somebody holds us for a neighbour: become one, or tell it that we are none (H-I1)."""
        if self.left:
            self.env.send(sender, Disconnect(leaving=True))
            return
        timer = self._answered(sender)  # if we asked it, its acceptance is still on its way
        if timer is not None or len(self.active) < self.config.active_size:
            self._add(sender)
        else:
            self.env.send(sender, Disconnect(leaving=False))
