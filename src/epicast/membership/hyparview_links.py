"""HyParView, part 2: how links come and go: joins, requests and replies, evictions and failures."""

from __future__ import annotations

from epicast.core.env import Timer
from epicast.core.ids import NodeId
from epicast.core.message import Message
from epicast.membership.hyparview_messages import (
    Disconnect,
    ForwardJoin,
    Join,
    Neighbour,
    NeighbourReply,
    Priority,
)
from epicast.membership.hyparview_views import Pulse, Views


class LinkKeeper(Views):
    __slots__ = ()

    # Joining

    def _join(self) -> None:
        """Ask a contact, or anyone we ever knew; while nobody answers, the time-out brings us back here. Processes that
        join through us meanwhile do not connect us to anything: only an answer ends it."""
        candidates = [peer for peer in (*self.contacts, *self.lost) if peer not in self.asked]
        if candidates:
            self.joining = self._one(candidates)
            self._ask(self.joining, Join())

    def on_join(self, sender: NodeId, msg: Join) -> None:
        if self.left:
            return
        known = [peer for peer in (*self.active, *self.passive) if peer != sender]
        self.env.send(sender, NeighbourReply(True, tuple(self._some(known, self.config.passive_size))))
        self._add(sender)  # the layer above greets it: not before it knows that we are neighbours
        # One walk for each further neighbour that the joiner may have (E-H2), each on a link of its own.
        others = [peer for peer in self.active if peer != sender]
        walks = self._some(others, self.config.active_size - 1)
        self.env.send_many(walks, ForwardJoin(sender, self.config.join_walk_length))

    def on_forward_join(self, sender: NodeId, msg: ForwardJoin) -> None:
        joiner, ttl = msg.joiner, min(msg.ttl, self.config.join_walk_length)
        if self.left or joiner == self.env.me:
            return
        onward = self._onward(sender, joiner) if ttl > 0 else None
        if onward is None:
            if joiner not in self.active and joiner not in self.asked and len(self.asked) < self.size_max:
                self._ask(joiner, Neighbour(Priority.WALK))
            return
        if ttl == self.config.passive_walk_at:
            self._add_passive(joiner)
        self.env.send(onward, ForwardJoin(joiner, ttl - 1))

    # Making links

    def on_neighbour(self, sender: NodeId, msg: Neighbour) -> None:
        if self.left:
            accepted = False
        elif sender in self.active or msg.priority == Priority.HIGH:
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
        if self.left:
            return
        timer = self._answered(sender)
        for peer in msg.sample[: self.config.passive_size]:
            self._add_passive(peer)
        if not msg.accepted:
            if sender in self.passive:
                self.refused[sender] = None
        elif timer is not None or len(self.active) < self.size_max:
            self._add(sender)
            if sender == self.exchanging:
                self._give_up_one_for(sender)
        elif sender not in self.active:
            self.env.send(sender, Disconnect(leaving=False))  # the answer came too late: we have no room any more
        self._fill()

    def _give_up_one_for(self, peer: NodeId) -> None:
        """An exchange: the neighbour that goes looks for another one, which it finds farther away as well."""
        self.exchanging = None
        unused = [each for each in self._unused() if each != peer]
        if unused and len(self.active) > self.config.active_size:
            self._evict(self._one(unused))

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
        if wanted <= 0 or self.left:
            return
        candidates = [p for p in self.passive if p not in self.asked and p not in self.refused]
        for peer in self._some(candidates, wanted):
            self._ask(peer, Neighbour(Priority.LOW if len(self.active) else Priority.HIGH))
        if not len(self.active) and not self.asked:
            self.refused.clear()
            self._join()

    # Adding and dropping

    def _add(self, peer: NodeId) -> None:
        if peer == self.env.me or peer in self.active:
            return
        if len(self.active) >= self.size_max:
            self._evict(self._one(self._unused() or self.active.items))
        self.passive.discard(peer)
        self.lost.discard(peer)
        self.refused.pop(peer, None)
        self.active.add(peer)
        self.pulses[peer] = Pulse(self.env.now_us())
        self.env.open(peer)
        self.listener.neighbour_up(peer)

    def _unused(self) -> list[NodeId]:
        """Neighbours that the layer above can do without: they go first, where somebody has to."""
        uses = self.listener.uses
        return [peer for peer in self.active if not uses(peer)]

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
