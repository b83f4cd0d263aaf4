"""Gossip: push, pull, and both, each eager or lazy (document 001, section 2.2; one mix is document 000's SimpleGossip).

    push, eager   the payload goes to some neighbours
    push, lazy    an advertisement goes to them, and the payload to those who ask for it
    pull          now and then a neighbour is asked; see `anti_entropy.py`

Pushing is infect and die: a process pushes an event when it comes for the first time, and never again. It may end
after some hops. Rumor mongering pushes to ln N random neighbours: that reaches nearly all, and pulling the rest.

An event is never pushed back to the process that it came from (E-B3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from epicast.core.env import Env
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import HOPS_MAX, Event, Message
from epicast.core.roles import Deliver, Membership
from epicast.dissemination.anti_entropy import AntiEntropy
from epicast.dissemination.gossip_messages import GossipConfig, Rumor
from epicast.dissemination.requests import IHave, Requests

__all__ = ["Gossip", "GossipConfig"]

NO_LIMIT = HOPS_MAX + 1


class Gossip(AntiEntropy):
    __slots__ = ("_eager_rounds", "_fanout", "_rounds")

    handles: ClassVar[tuple[type[Message], ...]] = (Rumor, *AntiEntropy.handles)

    def __init__(self, env: Env, config: GossipConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config, members, deliver)
        self.requests = Requests(env, config)
        self._fanout = config.targets
        self._rounds = 0 if config.push == "none" else config.rounds_max or NO_LIMIT
        self._eager_rounds = {"eager": NO_LIMIT, "mixed": config.eager_rounds}.get(config.push, 0)

    def broadcast(self, topic: str, payload: bytes) -> MsgId:
        me, seq = self.env.me, self._own()
        event = Rumor(me, seq, 0, topic, payload)
        self._keep(event)
        self.deliver(event, me)
        self._push(event, me)
        return me, seq

    def on_rumor(self, sender: NodeId, msg: Rumor) -> bool:
        source, seq = msg.source, msg.seq
        window = self._latest if source == self._latest_source else None
        # Most copies are duplicates: tell them without a call.
        if (window is not None and seq < window.next and window.before is None) or not self._is_new(source, seq):
            if self._unpushed and self._unpushed.pop((source, seq), 0):
                self._push(msg, sender)
            return True
        self._keep(msg)
        self.deliver(msg, sender)
        self._push(msg, sender)
        return False

    @property
    def pushes(self) -> int:
        return 1 if self._rounds else 0

    def _push(self, event: Event, sender: NodeId) -> None:
        hops = event.hops
        if hops >= self._rounds:
            if self._rounds:
                self._hold_back((event.source, event.seq), 1)
            return
        peers = self._targets(sender)
        if not peers:
            return
        if hops < self._eager_rounds:
            self.env.send_many(peers, _onward(event))
        else:
            self.env.send_many(peers, IHave(event.source, event.seq))

    def _targets(self, sender: NodeId) -> Sequence[NodeId]:
        if self._fanout:
            peers = self.members.sample(self._fanout + 1)
            if sender in peers:
                peers.remove(sender)
            return peers[: self._fanout]
        peers = list(self.members.peers())
        if sender in peers:
            peers.remove(sender)
        return peers

    def answer(self, peer: NodeId, event: Event, distance: int) -> None:
        self.env.send(peer, _onward(event))


def _onward(event: Event) -> Rumor:
    return Rumor(event.source, event.seq, min(event.hops + 1, HOPS_MAX), event.topic, event.payload)
