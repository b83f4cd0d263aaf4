"""Emergent, aware of locality (document 001, sections 2.2.3 and 4.3): payloads are pushed within an area, and between
areas only advertised, so that they cross the long links when somebody asks.

Two layers. *Peer selection* passes an event on when it comes for the first time, to neighbours in the area and outside,
each with a limit of rounds. The local round starts anew when an event comes from another area: otherwise it would have
few rounds left to spread there. *Point to point* decides whether a neighbour gets the payload or an advertisement, and
asks for payloads that were advertised (`requests.py`). The decision never changes who gets an event, only when and at
what cost.

A neighbour is near if its distance is 0. The sender tells the distance in each message: where views are directed, the
receiver may not know the sender at all.

Errata obeyed: who has an event never asks for it, its publisher least of all (E-CLON-11); whoever has it no more says
so (E-CLON-12); one request at a time (E-CLON-13); near and far neighbours are separate sets (E-CLON-25); the receiver
can tell whether an event came over a long link (E-CLON-26); what is kept are the rounds at this process, and an answer
counts one up for the link to whoever asked (E-CLON-27); remote rounds below the threshold are eager, not the others
(E-CLON-28), and the round is the one before the link is crossed (E-CLON-29); advertisers are in a total order
(E-CLON-30).
"""

from __future__ import annotations

from typing import ClassVar

from epicast.core.chance import sample
from epicast.core.env import Env
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import HOPS_MAX, Event, Message
from epicast.core.roles import Deliver, Membership
from epicast.dissemination.anti_entropy import AntiEntropy, Copy
from epicast.dissemination.emergent_messages import EmergentConfig, Msg
from epicast.dissemination.requests import DISTANCE_MAX, Fetching, IHave, Requests

__all__ = ["Emergent", "EmergentConfig"]

NO_LIMIT = HOPS_MAX + 1
NEAR, FAR = 1, 2  # sorts of neighbours

Far = dict[int, list[NodeId]]
"""By distance."""


class Emergent(AntiEntropy):
    __slots__ = ("_eager_near", "_eager_remote_rounds", "_local_rounds", "_remote_rounds")

    handles: ClassVar[tuple[type[Message], ...]] = (Msg, Fetching, *AntiEntropy.handles)
    config: EmergentConfig

    def __init__(self, env: Env, config: EmergentConfig, members: Membership, deliver: Deliver) -> None:
        super().__init__(env, config, members, deliver)
        self.requests = Requests(env, config, config.patience_us, self._area)
        self._local_rounds = config.local_rounds or NO_LIMIT
        self._remote_rounds = config.remote_rounds or NO_LIMIT
        self._eager_near = config.eager != "none"
        self._eager_remote_rounds = {"all": NO_LIMIT, "near": config.eager_remote_rounds}.get(config.eager, 0)

    # Peer selection

    def broadcast(self, topic: str, payload: bytes) -> MsgId:
        me, seq = self.env.me, self._own()
        event = Msg(me, seq, 0, 0, 0, 0, topic, payload)
        self._keep(event)
        self.deliver(event, me)
        self._forward(event, (me,))
        return me, seq

    def on_msg(self, sender: NodeId, msg: Msg) -> bool:
        source, seq = msg.source, msg.seq
        window = self._latest if source == self._latest_source else None
        # Most copies are duplicates: tell them without a call.
        if (window is not None and seq < window.next and window.before is None) or not self._is_new(source, seq):
            if self._unpushed and (parts := self._unpushed.pop((source, seq), 0)):
                self._forward(_arrived(msg), (sender,), parts)
            return True
        msg = _arrived(msg)
        askers = self._keep(msg)
        self.deliver(msg, sender)
        for asker, distance in askers:
            self.answer(asker, msg, distance)
        self._forward(msg, (sender, *[asker for asker, _ in askers]) if askers else (sender,))
        return False

    @property
    def pushes(self) -> int:
        return NEAR | FAR

    def _forward(self, msg: Msg, but: tuple[NodeId, ...], parts: int = NEAR | FAR) -> None:
        near, far = self._neighbours(but)
        over = NEAR * (msg.local_round >= self._local_rounds) | FAR * (msg.remote_round >= self._remote_rounds)
        if parts & over:
            self._hold_back((msg.source, msg.seq), parts & over)
        if far and parts & ~over & FAR:
            eager = msg.remote_round < self._eager_remote_rounds
            for distance, peers in (self._some(far) if self.config.remote_fanout else far).items():
                self._pass_on(msg, peers, distance, eager)
        if near and parts & ~over & NEAR:
            if self.config.local_fanout:
                near = sample(self.env.rng, near, self.config.local_fanout)
            self._pass_on(msg, near, 0, self._eager_near)

    def _neighbours(self, but: tuple[NodeId, ...]) -> tuple[list[NodeId], Far]:
        """Near and far ones, but for some."""
        near: list[NodeId] = []
        far: Far = {}
        distance_of = self.members.distance
        for peer in self.members.peers():
            if peer in but:
                continue
            distance = distance_of(peer)
            if not distance:
                near.append(peer)
            elif distance in far:
                far[distance].append(peer)
            else:
                far[distance] = [peer]
        return near, far

    def _some(self, far: Far) -> Far:
        pairs = [(distance, peer) for distance, peers in far.items() for peer in peers]
        some: Far = {}
        for distance, peer in sample(self.env.rng, pairs, self.config.remote_fanout):
            some.setdefault(distance, []).append(peer)
        return some

    # Point to point

    def _pass_on(self, msg: Msg, peers: list[NodeId], distance: int, eager: bool) -> None:
        if eager:
            self.env.send_many(peers, _onward(msg, distance))
        else:
            self.env.send_many(peers, IHave(msg.source, msg.seq, min(distance, DISTANCE_MAX)))

    def answer(self, peer: NodeId, event: Event, distance: int) -> None:
        assert isinstance(event, Msg)
        self.env.send(peer, _onward(event, distance))

    def on_fetching(self, sender: NodeId, msg: Fetching) -> None:
        if self._lacks(msg.source, msg.seq):
            self.requests.promised((msg.source, msg.seq), msg, sender)

    def _area(self, but: NodeId) -> list[NodeId]:
        return self._neighbours((but,))[0]

    def _kept(self, copy: Copy) -> Event:
        return Msg(copy.source, copy.seq, copy.hops, 0, 0, 0, copy.topic, copy.payload)


def _arrived(msg: Msg) -> Msg:
    """Return the message as it counts here: one that came from another area begins its local rounds anew."""
    if msg.distance and msg.local_round:
        return Msg(msg.source, msg.seq, msg.hops, 0, msg.remote_round, msg.distance, msg.topic, msg.payload)
    return msg


def _onward(msg: Msg, distance: int) -> Msg:
    """As it goes over a link of this length: one of the two rounds is one more."""
    local, remote = msg.local_round, msg.remote_round
    if distance:
        remote = min(remote + 1, HOPS_MAX)
    else:
        local = min(local + 1, HOPS_MAX)
    hops = min(msg.hops + 1, HOPS_MAX)
    return Msg(msg.source, msg.seq, hops, local, remote, min(distance, DISTANCE_MAX), msg.topic, msg.payload)
