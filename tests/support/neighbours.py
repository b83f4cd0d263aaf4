"""What stands beside one protocol in a unit test: the layer above a membership, or the membership below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from epicast.core.ids import FlowId, NodeId
from epicast.core.message import Event, Message, Position
from epicast.core.recording import Effect, RecordingEnv, Send
from epicast.core.roles import handler_name
from epicast.dissemination.brisa import Brisa, BrisaConfig
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.brisa_messages import Data, Deactivate, Whereabouts
from epicast.membership.hyparview import HyParView, HyParViewConfig
from epicast.membership.hyparview_messages import NeighbourReply, ShuffleReply

STRANGER = 99  # no test gives a neighbour this id


class Ear:
    """The layer above a membership: writes down what it is told."""

    def __init__(self) -> None:
        self.notes: list[tuple[Any, ...]] = []
        self.told: tuple[Position, ...] = ()  # what it wants its neighbours to know
        self.used: tuple[NodeId, ...] = ()  # the neighbours that it says it needs

    def neighbour_up(self, peer: NodeId) -> None:
        self.notes.append(("up", peer))

    def neighbour_down(self, peer: NodeId, gone: bool) -> None:
        self.notes.append(("down", peer, "gone" if gone else "alive"))

    def positions(self) -> tuple[Position, ...]:
        return self.told

    def heard(self, peer: NodeId, positions: tuple[Position, ...], at_us: int) -> None:
        self.notes.append(("heard", peer, positions))

    def uses(self, peer: NodeId) -> bool:
        return peer in self.used


class Members:
    """The membership below a dissemination protocol: neighbours and round trips as the test says."""

    def __init__(self, peers: Iterable[NodeId] = (), rtts_us: dict[NodeId, int] | None = None) -> None:
        self.view = list(peers)
        self.rtts_us = rtts_us or {}
        self.widened = 0  # how often it was asked for somebody from farther away
        self.news_us = 1_000_000  # how often neighbours are told of positions

    def peers(self) -> Sequence[NodeId]:
        return self.view

    def sample(self, count: int) -> list[NodeId]:
        return self.view[:count]

    def acquaintances(self, count: int) -> list[NodeId]:
        return self.sample(count)

    def rtt_us(self, peer: NodeId) -> int | None:
        return self.rtts_us.get(peer)

    def widen(self) -> None:
        self.widened += 1


def hyparview(
    me: NodeId = 0,
    active: Iterable[NodeId] = (),
    passive: Iterable[NodeId] = (),
    *,
    seed: int = 0,
    kind: type[HyParView] = HyParView,
    **settings: Any,
) -> tuple[HyParView, RecordingEnv, Ear]:
    """One process with these views, as if it had come by them earlier: nothing of that is in the effects."""
    env, ear = RecordingEnv(me, seed), Ear()
    view = kind(env, HyParViewConfig(**settings))
    view.listener = ear
    for peer in active:
        view.on_neighbour_reply(peer, NeighbourReply(True))
    if passive:
        view.on_shuffle_reply(STRANGER, ShuffleReply(tuple(passive)))
    env.take()
    ear.notes.clear()
    return view, env, ear


class Tree:
    """One BRISA process among its neighbours: `env` has what it sends, `got` what it hands to the application."""

    def __init__(
        self,
        me: NodeId = 5,
        neighbours: Iterable[NodeId] = (1, 2, 3),
        rtts_us: dict[NodeId, int] | None = None,
        *,
        kind: type[Brisa] = Brisa,
        **settings: Any,
    ) -> None:
        self.env = RecordingEnv(me)
        self.members = Members(neighbours, rtts_us)
        self.got: list[tuple[NodeId, int]] = []
        self.answered: dict[NodeId, list[Message]] = {}  # requests that a test has answered in a neighbour's name
        self.brisa = kind(self.env, BrisaConfig(**{"hard_wait_us": 0, **settings}), self.members, self._deliver)
        for peer in self.members.view:
            self.brisa.neighbour_up(peer)

    def _deliver(self, event: Event, sender: NodeId) -> None:
        self.got.append((event.source, event.seq))

    def flow(self, flow: FlowId = (0, 0)) -> FlowState:
        return self.brisa.flows[flow]

    def take(self) -> list[Effect]:
        return self.env.take()

    def attached(self, parent: NodeId = 1, path: tuple[NodeId, ...] = (0, 1)) -> Tree:
        """The first message came from this parent, and the others have said that they do not want copies."""
        self.brisa.on_data(parent, data(0, path))
        for peer in self.members.view:
            if peer != parent:
                self.brisa.on_deactivate(peer, Deactivate((0, 0)))
        self.env.take()
        self.env.records.clear()
        self.got.clear()
        return self

    def hears(
        self,
        peer: NodeId,
        path: tuple[NodeId, ...],
        *,
        last: int = 0,
        pending: bool = False,
        age: int = 0,
        delay: int = 0,
    ) -> None:
        """A keep-alive that tells where the peer is."""
        told = position(path, last=last, pending=pending, age=age, delay=delay)
        self.brisa.heard(peer, (told,), self.env.now_us())

    def told(
        self, peer: NodeId, path: tuple[NodeId, ...], *, last: int = 0, pending: bool = False, delay: int = 0
    ) -> None:
        """A message that tells where the peer is."""
        self.brisa.on_whereabouts(peer, Whereabouts(position(path, last=last, pending=pending, delay=delay)))


def data(
    seq: int,
    path: tuple[NodeId, ...],
    *,
    source: NodeId = 0,
    flow: FlowId = (0, 0),
    flags: int = 0,
    hops: int | None = None,
) -> Data:
    """As it comes from the last process of the path. One hop for each, so that hops and paths can be compared."""
    return Data(flow, source, seq, len(path) if hops is None else hops, path, flags, "t", b"payload")


def position(
    path: tuple[NodeId, ...],
    *,
    last: int = 0,
    pending: bool = False,
    flow: FlowId = (0, 0),
    age: int = 0,
    delay: int = 0,
) -> Position:
    """Of a process that has the messages of process 0 up to `last`."""
    return Position(flow, path, ((0, last),), pending, age, delay)


def exchange(processes: Mapping[NodeId, Any]) -> None:
    """Carry messages between these protocols, each link in order, until there are none; others' are lost."""
    quiet = False
    while not quiet:
        quiet = True
        for me, process in processes.items():
            for effect in process.env.take():
                if isinstance(effect, Send) and effect.to in processes:
                    quiet = False
                    getattr(processes[effect.to], handler_name(type(effect.msg)))(me, effect.msg)
