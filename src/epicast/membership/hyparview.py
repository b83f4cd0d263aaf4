"""HyParView: a small symmetric active view to talk over, a large passive view to repair it from (Leitao et al., DSN 2007),
with the expansion factor that BRISA's authors added.

    joining --NeighbourReply(accepted)--> member --leave()--> left
    a neighbour: asked --accepted--> active --Disconnect, silence, link down--> passive, lost or forgotten

The active view aims at `active_size` and may grow to `active_size * expansion` (H-I2); a link lost while at least
`active_size` remain is not replaced (H-I3), which spares the chain reaction of evictions at start-up. Active views are
symmetric at quiescence (H-I1): links are made by request and reply, and a keep-alive from somebody who is no neighbour
ends in a link on both sides or on none.

Errata obeyed: replacements are promoted from the *passive* view (E-H1); a joiner is given `active_size` neighbours even by
a contact that has more (E-H2); a join walk ends where it cannot go on, full views evict before they insert, and every
insertion is made symmetric by a message (E-CLON-6 to E-CLON-10).

Departures: links above target at both ends, and that no flow uses, are shed one by one, or start-up would leave
the mean degree at twice the target (H-I4 wants it near the target). Failed peers are probed now and then: two halves of a
healed partition that purged each other from their views would otherwise never meet again. Once in a while, or when the
layer above asks for it, a link to a random passive peer is added, so that islands of satisfied nodes cannot last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.env import Env, Timer
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.core.ordered_set import OrderedSet
from epicast.core.periodic import Periodic
from epicast.core.roles import Neighbours
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


class Pulse:
    """What keep-alives tell about one neighbour."""

    __slots__ = ("degree", "heard_us", "rtt_us")

    def __init__(self, heard_us: int) -> None:
        self.heard_us = heard_us
        self.rtt_us: int | None = None
        self.degree = 0


class HyParView:
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
    listener: Neighbours

    def __init__(self, env: Env, config: HyParViewConfig) -> None:
        self.env, self.config = env, config
        self.active: OrderedSet[NodeId] = OrderedSet()
        self.passive: OrderedSet[NodeId] = OrderedSet()
        self.lost: OrderedSet[NodeId] = OrderedSet()  # failed, as far as we know
        self.contacts: OrderedSet[NodeId] = OrderedSet()
        self.pulses: dict[NodeId, Pulse] = {}  # of the active view
        self.asked: dict[NodeId, Timer] = {}  # requests that wait for a reply; at most active_size_max
        self.refused: dict[NodeId, None] = {}  # since the last shuffle; members of the passive view
        self.joining: NodeId | None = None  # whom we asked to let us in, until somebody does
        self.probed: NodeId | None = None  # a passive peer that we shuffle with, until it answers
        self.size_max = config.active_size_max
        self._keep_alive = Periodic(env, config.keep_alive_us, self._on_keep_alive_due)
        self._shuffle = Periodic(env, config.shuffle_interval_us, self._on_shuffle_due)
        self._left = False

    # Calls

    def start(self, contacts: Sequence[NodeId]) -> None:
        for contact in contacts:
            if contact != self.env.me:
                self.contacts.add(contact)
        self._keep_alive.start()
        self._shuffle.start()
        self._join()

    def leave(self) -> None:
        self._left = True
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

    def rtt_us(self, peer: NodeId) -> int | None:
        pulse = self.pulses.get(peer)
        return pulse.rtt_us if pulse else None

    # Joining

    def _join(self) -> None:
        """Ask a contact, or anyone we ever knew; while nobody answers, the time-out brings us back here. Processes that
        join through us meanwhile do not connect us to anything: only an answer ends it."""
        candidates = [peer for peer in (*self.contacts, *self.lost) if peer not in self.asked]
        if candidates:
            self.joining = self._one(candidates)
            self._ask(self.joining, Join())

    def on_join(self, sender: NodeId, msg: Join) -> None:
        if self._left:
            return
        self._add(sender)
        known = [peer for peer in (*self.active, *self.passive) if peer != sender]
        self.env.send(sender, NeighbourReply(True, tuple(self._some(known, self.config.passive_size))))
        # One walk for each further neighbour that the joiner may have (E-H2), each on a link of its own.
        others = [peer for peer in self.active if peer != sender]
        walks = self._some(others, self.config.active_size - 1)
        self.env.send_many(walks, ForwardJoin(sender, self.config.join_walk_length))

    def on_forward_join(self, sender: NodeId, msg: ForwardJoin) -> None:
        joiner, ttl = msg.joiner, msg.ttl
        if self._left or joiner == self.env.me:
            return
        onward = [peer for peer in self.active if peer not in (sender, joiner)]
        if ttl == 0 or not onward:
            if joiner not in self.active and joiner not in self.asked and len(self.asked) < self.size_max:
                self._ask(joiner, Neighbour(Priority.WALK))
            return
        if ttl == self.config.passive_walk_at:
            self._add_passive(joiner)
        self.env.send(self._one(onward), ForwardJoin(joiner, ttl - 1))

    # Making links

    def on_neighbour(self, sender: NodeId, msg: Neighbour) -> None:
        if self._left:
            accepted = False
        elif sender in self.active:
            accepted = True
        elif msg.priority == Priority.HIGH:
            accepted = True
        elif msg.priority == Priority.WALK:
            accepted = len(self.active) < self.config.active_size
        else:
            accepted = len(self.active) < self.size_max
        self.env.send(sender, NeighbourReply(accepted))
        if accepted:
            self._add(sender)
        else:
            self._add_passive(sender)

    def on_neighbour_reply(self, sender: NodeId, msg: NeighbourReply) -> None:
        if self._left:
            return
        timer = self._answered(sender)
        for peer in msg.sample[: self.config.passive_size]:
            self._add_passive(peer)
        if not msg.accepted:
            self.refused[sender] = None
        elif timer is not None or len(self.active) < self.size_max:
            self._add(sender)
        elif sender not in self.active:
            self.env.send(sender, Disconnect(leaving=False))  # the answer came too late: we have no room any more
        self._fill()

    def on_disconnect(self, sender: NodeId, msg: Disconnect) -> None:
        if msg.leaving:
            self.passive.discard(sender)
            self.contacts.discard(sender)
        if sender in self.active:
            self._drop(sender, gone=msg.leaving)
            self._fill()

    def on_link_up(self, peer: NodeId) -> None: ...

    def on_link_down(self, peer: NodeId) -> None:
        if peer in self.active:
            self._lose(peer)

    def _ask(self, peer: NodeId, request: Message) -> None:
        self.asked[peer] = self.env.after(self.config.reply_timeout_us, self._on_no_reply, peer)
        self.env.send(peer, request)

    def _answered(self, peer: NodeId) -> Timer | None:
        timer = self.asked.pop(peer, None)
        if timer is not None:
            timer.cancel()
        if peer == self.joining:
            self.joining = None
        return timer

    def _on_no_reply(self, peer: NodeId) -> None:
        self.asked.pop(peer, None)
        self.passive.discard(peer)
        self._remember_lost(peer)
        if peer == self.joining:
            self._join()
        self._fill()

    def _fill(self) -> None:
        """Promote from the passive view until the target is reached or everyone was asked."""
        wanted = self.config.active_size - len(self.active) - len(self.asked)
        if wanted <= 0 or self._left:
            return
        candidates = [p for p in self.passive if p not in self.asked and p not in self.refused]
        for peer in self._some(candidates, wanted):
            self._ask(peer, Neighbour(Priority.LOW if len(self.active) else Priority.HIGH))
        if not len(self.active) and not self.asked:
            self.refused.clear()
            self._join()

    # Changing the views

    def _add(self, peer: NodeId) -> None:
        if peer == self.env.me or peer in self.active:
            return
        if len(self.active) >= self.size_max:
            self._evict(self.active.pick(self.env.rng))
        self.passive.discard(peer)
        self.lost.discard(peer)
        self.refused.pop(peer, None)
        self.active.add(peer)
        self.pulses[peer] = Pulse(self.env.now_us())
        self.env.open(peer)
        self.listener.neighbour_up(peer)

    def _evict(self, peer: NodeId) -> None:
        self.env.send(peer, Disconnect(leaving=False))
        self._drop(peer, gone=False)

    def _lose(self, peer: NodeId) -> None:
        """The peer failed, or we cannot reach it: to us that is the same."""
        self._drop(peer, gone=True)
        self._remember_lost(peer)
        self._fill()

    def _drop(self, peer: NodeId, *, gone: bool) -> None:
        self.active.discard(peer)
        del self.pulses[peer]
        self.env.close(peer)
        if not gone:
            self._add_passive(peer)
        self.listener.neighbour_down(peer, gone)

    def _add_passive(self, peer: NodeId, spare: list[NodeId] | None = None) -> None:
        """In a full view it takes the place of one of the `spare`, or of anyone."""
        if peer == self.env.me or peer in self.active or peer in self.passive:
            return
        if len(self.passive) >= self.config.passive_size:
            self._forget(spare.pop() if spare else self.passive.pick(self.env.rng))
        self.passive.add(peer)

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

    # Shuffling: keeps the passive view fresh

    def _on_shuffle_due(self) -> None:
        self.refused.clear()
        self._probe_lost()
        self._probe_passive()
        self._fill()
        if self.env.rng.random() < self.config.refresh:
            self._ask_far(Priority.LOW)
        self._send_shuffle()

    def _send_shuffle(self) -> None:
        if len(self.active):
            peer = self.active.pick(self.env.rng)
            self.env.send(peer, Shuffle(self.env.me, self.config.shuffle_walk_length, self._shuffle_sample()))

    def widen(self) -> None:
        self._ask_far(Priority.HIGH)

    def _ask_far(self, priority: Priority) -> None:
        """One more link, to somebody from farther away than our neighbours' neighbours: for an overlay that fell apart
        into islands, each content with itself."""
        candidates = [p for p in self.passive if p not in self.asked and p not in self.refused]
        if candidates and not self._left:
            self._ask(self._one(candidates), Neighbour(priority))

    def _shuffle_sample(self) -> tuple[NodeId, ...]:
        active = self.active.sample(self.env.rng, self.config.shuffle_active)
        passive = self.passive.sample(self.env.rng, self.config.shuffle_passive)
        return (self.env.me, *active, *passive)

    def on_shuffle(self, sender: NodeId, msg: Shuffle) -> None:
        if self._left or msg.origin == self.env.me:
            return
        onward = [peer for peer in self.active if peer not in (sender, msg.origin)]
        if msg.ttl > 0 and onward:
            self.env.send(self._one(onward), Shuffle(msg.origin, msg.ttl - 1, msg.sample))
            return
        answer = tuple(self.passive.sample(self.env.rng, min(len(msg.sample), self.config.passive_size)))
        self.env.send(msg.origin, ShuffleReply(answer))
        self._merge(msg.sample, answer)

    def on_shuffle_reply(self, sender: NodeId, msg: ShuffleReply) -> None:
        if self._left:
            return
        if sender == self.probed:
            self.probed = None
        if sender in self.lost:
            self._found(sender)
        self._merge(msg.sample, ())

    def _merge(self, sample: Sequence[NodeId], given_away: Sequence[NodeId]) -> None:
        """Take in what the other side sent; in a full view it replaces first what the other side now has."""
        spare = list(given_away)
        for peer in sample[: self.config.passive_size]:
            self._add_passive(peer, spare)

    def _probe_lost(self) -> None:
        """Ask a peer that we gave up whether it is there again; its answer is a `ShuffleReply`."""
        candidates = [p for p in (*self.lost, *self.contacts) if p not in self.active and p not in self.passive]
        if candidates:
            peer = self._one(candidates)
            self._remember_lost(peer)
            self.env.send(peer, Shuffle(self.env.me, 0, self._shuffle_sample()))

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
        if peer not in self.active and peer not in self.asked and len(self.active) < self.size_max:
            self._ask(peer, Neighbour(Priority.LOW))

    def _shed(self) -> None:
        """One link fewer where both ends have more than they want. Not at once: the other end may be about to do so."""
        target = self.config.active_size
        if self.env.rng.random() >= self.config.shed:
            return
        surplus = [p for p in self.active if self.pulses[p].degree > target and not self.listener.uses(p)]
        if surplus:
            self._evict(self._one(surplus))

    # Keep-alives: failure detection, round-trip times, and news from the layer above

    def _on_keep_alive_due(self) -> None:
        now = self.env.now_us()
        silent = [p for p, pulse in self.pulses.items() if now - pulse.heard_us > self.config.silence_us]
        for peer in silent:
            self._lose(peer)
        if len(self.active) < self.config.active_size:
            self._fill()
            if not self.asked:  # we know too few to ask
                self._send_shuffle()
        elif len(self.active) > self.config.active_size:
            self._shed()
        self.env.send_many(self.active.items, KeepAlive(now, len(self.active), self.listener.positions()))

    def on_keep_alive(self, sender: NodeId, msg: KeepAlive) -> None:
        pulse = self.pulses.get(sender)
        if pulse is None:
            self._hear_stranger(sender)
            return
        pulse.heard_us = self.env.now_us()
        pulse.degree = msg.degree
        self.env.send(sender, KeepAliveAck(msg.sent_us))
        if msg.positions:
            self.listener.heard(sender, msg.positions)

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
        if self._left:
            self.env.send(sender, Disconnect(leaving=True))
            return
        timer = self._answered(sender)  # if we asked it, its acceptance is still on its way
        if timer is not None or len(self.active) < self.config.active_size:
            self._add(sender)
        else:
            self.env.send(sender, Disconnect(leaving=False))

    # Chance

    def _one(self, peers: Sequence[NodeId]) -> NodeId:
        return peers[int(self.env.rng.random() * len(peers))]

    def _some(self, peers: Sequence[NodeId], count: int) -> list[NodeId]:
        return self.env.rng.sample(peers, min(count, len(peers)))
