"""Small simulated overlays whose graph, delays and protocols a test chooses.

`Overlay` holds its links fast: a HyParView that knows nobody but the given neighbours, so that it sends keep-alives and
notices failures, yet builds nothing. `static=True` leaves even that out: then nothing but payload and tree control
crosses the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from epicast.core.config import DAY_US, Config
from epicast.core.ids import FlowId
from epicast.core.message import Event, Message
from epicast.core.recording import Record
from epicast.core.records import Kind, Level
from epicast.dissemination.brisa import Brisa, BrisaConfig
from epicast.dissemination.brisa_flow import FlowState
from epicast.dissemination.flood import Flood, FloodConfig
from epicast.membership.hyparview import HyParView, HyParViewConfig
from epicast.membership.hyparview_messages import NeighbourReply
from epicast.membership.static import Static, StaticConfig
from epicast.sim import graph
from epicast.sim.engine import DOWN, UP, Engine
from epicast.sim.latency import Latency, parse_latency
from epicast.sim.network import Network, NetworkConfig
from epicast.stacks.node import Node, handler_table
from epicast.stacks.stack import Role, Stack

MS = 1_000
SECOND = 1_000_000
FLOW: FlowId = (0, 0)  # the first flow of process 0

Edge = tuple[int, int]
M = TypeVar("M", bound=Message)

# With one neighbour it is content, it has room for eight, and it never hears of others.
HELD = HyParViewConfig(active_size=1, expansion=8.0, refresh=0.0, shed=0.0, shuffle_interval_us=DAY_US)


class Sent(NamedTuple):
    time_us: int
    src: int
    dst: int
    msg: Any


class Delays:
    """The same delay on every link, but for those that the test names."""

    pairwise = True

    def __init__(self, each_us: int, special_us: Mapping[Edge, int] | None = None) -> None:
        self.each_us, self.special_us = each_us, dict(special_us or {})

    def chunk(self, rng: Random, count: int) -> list[int]:
        raise AssertionError("pairwise delays are asked for one by one")

    def delay_us(self, src: int, dst: int, rng: Random) -> int:
        special = self.special_us
        return special.get((src, dst), special.get((dst, src), self.each_us))


class Spy:
    """A process's Env that also writes down what is sent and recorded."""

    def __init__(self, env: Any, sent: list[Sent], records: list[tuple[int, Record]]) -> None:
        self._env, self._sent, self._records = env, sent, records
        self.me, self.rng, self.now_us = env.me, env.rng, env.now_us
        self.after, self.open, self.close = env.after, env.open, env.close

    def send(self, to: int, msg: Message) -> None:
        self.send_many((to,), msg)

    def send_many(self, to: Sequence[int], msg: Message) -> None:
        now = self.now_us()
        self._sent.extend(Sent(now, self.me, peer, msg) for peer in to)
        self._env.send_many(to, msg)

    def deliver(self, event: Event, sender: int) -> None:
        self._env.deliver(event, sender)

    def record(self, kind: int, *args: Any, **columns: Any) -> None:
        self._records.append((self.me, Record(kind, *args, **columns)))
        self._env.record(kind, *args, **columns)


class Overlay:
    """`sent` and `records` hold everything since the last `forget`; `delivered` what each application got."""

    def __init__(
        self,
        edges: Iterable[Edge],
        make: type = Brisa,
        config: Config | None = None,
        *,
        static: bool = False,
        held: HyParViewConfig = HELD,
        latency: str | Latency = "uniform 10ms 100ms",
        seed: int = 1,
    ) -> None:
        self.edges = list(edges)
        config = config or (FloodConfig() if issubclass(make, Flood) else BrisaConfig())
        membership = Role("static", Static, StaticConfig()) if static else Role("hyparview", HyParView, held)
        self.stack = Stack("test", "", membership, Role("test", make, config))
        self.engine = Engine(100, Random(seed), Level.OFF)
        model = parse_latency(latency).build(Random(seed)) if isinstance(latency, str) else latency
        self.network = Network(self.engine, NetworkConfig(), model, Random(seed + 1))
        self.network.link_notice = self._on_link
        self.engine.use_handlers(handler_table(self.stack))
        self.sent: list[Sent] = []
        self.records: list[tuple[int, Record]] = []
        self.delivered: dict[int, list[tuple[Any, int]]] = {}
        self.nodes: dict[int, Node] = {}
        for _ in range(1 + max(max(edge) for edge in self.edges)):
            self._add_node()
        self._start(static)
        self.run(SECOND)
        self.forget()

    def _add_node(self) -> None:
        me = self.engine.add_node()
        got = self.delivered[me] = []
        spy = Spy(self.engine.env(me), self.sent, self.records)
        node = self.nodes[me] = Node(spy, self.stack, lambda event: got.append(_id(event)))
        self.engine.set_state(me, UP, node.parts())

    def _start(self, static: bool) -> None:
        peers: dict[int, list[int]] = {me: [] for me in self.nodes}
        for a, b in self.edges:
            peers[a].append(b)
            peers[b].append(a)
        for me, node in self.nodes.items():
            node.start(peers[me] if static else ())
            for peer in peers[me]:
                if static:
                    self.network.links.open(me, peer)
                else:
                    node.membership.on_neighbour_reply(peer, NeighbourReply(True))

    def _on_link(self, me: int, peer: int, up: bool) -> None:
        node = self.nodes.get(me)
        if node is not None:
            (node.on_link_up if up else node.on_link_down)(peer)

    # What a test does

    def run(self, us: int) -> None:
        assert self.engine.run(self.engine.now + us)

    def publish(self, node: int = 0, topic: str = "t", payload: bytes = b"payload") -> None:
        self.nodes[node].publish(topic, payload)

    def stream(self, messages: int, node: int = 0, every_us: int = SECOND) -> None:
        for _ in range(messages):
            self.publish(node)
            self.run(every_us)

    def crash(self, *nodes: int) -> None:
        for node in nodes:
            del self.nodes[node]
            self.engine.set_state(node, DOWN)
            self.network.gone(node)

    def forget(self) -> None:
        self.sent.clear()
        self.records.clear()
        self.engine.counts[Kind.DUPLICATE] = 0

    # What it sees

    def sends(self, kind: type[Message]) -> list[Sent]:
        return [sent for sent in self.sent if type(sent.msg) is kind]

    def duplicates(self) -> int:
        return self.engine.counts[Kind.DUPLICATE]

    def recorded(self, kind: Kind) -> list[tuple[int, Record]]:
        return [(node, record) for node, record in self.records if record.kind == kind]

    def flow(self, node: int, flow: FlowId = FLOW) -> FlowState:
        return self.nodes[node].dissemination.flows[flow]  # type: ignore[attr-defined,no-any-return]

    def parents(self, flow: FlowId = FLOW) -> dict[int, int | None]:
        """Of every process but the source."""
        return {me: self.flow(me, flow).parent for me in self.nodes if me != flow[0]}  # type: ignore[misc]

    def views(self) -> dict[int, list[int]]:
        return {me: sorted(node.membership.peers()) for me, node in self.nodes.items()}  # type: ignore[type-var]


def _id(event: Event) -> tuple[Any, int]:
    return event.source, event.seq


# Graphs


def random_edges(nodes: int, degree: int, seed: int = 1) -> list[Edge]:
    """A connected regular graph."""
    for attempt in range(100):
        neighbours = graph.symmetric(nodes, degree, Random(seed * 1000 + attempt))
        edges = [(a, b) for a, peers in enumerate(neighbours) for b in peers if a < b]
        if is_connected(dict(enumerate(neighbours))):
            return edges
    raise AssertionError("no connected graph found")


def ring(nodes: int) -> list[Edge]:
    return [(a, (a + 1) % nodes) for a in range(nodes)]


def star(nodes: int) -> list[Edge]:
    return [(0, a) for a in range(1, nodes)]


def complete(nodes: int) -> list[Edge]:
    return [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]


def is_connected(neighbours: Mapping[int, Iterable[int]]) -> bool:
    """From the first process, over links to those that exist, to all the others."""
    found: dict[int, None] = {}
    waiting = [next(iter(neighbours))]
    while waiting:
        node = waiting.pop()
        if node not in found and node in neighbours:
            found[node] = None
            waiting.extend(neighbours[node])
    return len(found) == len(neighbours)


def one_sided(neighbours: Mapping[int, Iterable[int]]) -> list[Edge]:
    """Links that only one of two living processes has in its view."""
    return [(a, b) for a, peers in neighbours.items() for b in peers if b in neighbours and a not in neighbours[b]]


# Trees


def chain(parents: Mapping[int, int | None], node: int) -> tuple[int, ...]:
    """From the source to the process over its parents; empty if they do not lead there."""
    path = [node]
    while (parent := parents.get(path[-1])) is not None:
        if parent in path:
            return ()
        path.append(parent)
    return tuple(reversed(path)) if path[-1] not in parents else ()


def cycles(parents: Mapping[int, int | None]) -> list[int]:
    """The processes whose parents lead back to them."""
    found = []
    for node in parents:
        at, steps = parents[node], 0
        while at is not None and at != node and steps <= len(parents):
            at, steps = parents.get(at), steps + 1
        if at == node:
            found.append(node)
    return found


def is_tree(parents: Mapping[int, int | None], root: int = 0) -> bool:
    """Every process leads to the root."""
    return all(chain(parents, node)[:1] == (root,) for node in parents)


def while_running(overlay: Overlay, us: int, step_us: int, look: Callable[[], None]) -> None:
    """Let time pass, looking again and again."""
    for _ in range(us // step_us):
        overlay.run(step_us)
        look()
