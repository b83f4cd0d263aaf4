"""An engine and a network with processes that do nothing but write down what they get."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, ClassVar

import numpy as np

from epicast.core.message import Message
from epicast.core.records import Kind, Level
from epicast.sim.engine import DOWN, PAUSED, UP, Engine
from epicast.sim.latency import Latency, parse_latency
from epicast.sim.network import Network, NetworkConfig
from epicast.trace.batch import Batch


class Note(Message, tag=0):
    layer: ClassVar[str] = "test"
    number: int
    filling: bytes = b""


class Listener:
    """Had a note before: says so, as a handler of payload does."""

    def __init__(self, rig: Rig, me: int) -> None:
        self.rig, self.me = rig, me
        self.numbers: dict[int, None] = {}

    def on_note(self, sender: int, note: Note) -> bool:
        self.rig.log.append((self.rig.engine.now, self.me, sender, note.number))
        known = note.number in self.numbers
        self.numbers[note.number] = None
        return known


class Rig:
    """`log` holds (time, node, sender, number) of receptions, `notices` (time, node, peer, up) of links."""

    def __init__(
        self, nodes: int = 2, latency: str | Latency = "constant 10ms", *, seed: int = 1, **config: Any
    ) -> None:
        self.engine = Engine(config.get("tick_us", 100), Random(seed), Level.FULL)
        model = parse_latency(latency).build(Random(seed)) if isinstance(latency, str) else latency
        self.network = Network(self.engine, NetworkConfig(**config), model, Random(seed))
        self.links = self.network.links
        self.log: list[tuple[int, int, int, int]] = []
        self.notices: list[tuple[int, int, int, bool]] = []
        self.batches: list[Batch] = []
        self.engine.sink = self.batches.append
        self.network.link_notice = lambda me, peer, up: self.notices.append((self.engine.now, me, peer, up))
        self.engine.use_handlers({Note: (0, Listener.on_note)})
        self.listeners = [Listener(self, self.engine.add_node()) for _ in range(nodes)]
        for me, listener in enumerate(self.listeners):
            self.engine.set_state(me, UP, (listener,))

    def send(self, src: int, dst: int, number: int, filling: bytes = b"") -> None:
        self.engine.env(src).send(dst, Note(number, filling))

    def run(self, until_us: int = 60_000_000) -> None:
        assert self.engine.run(until_us)

    def pause(self, node: int) -> None:
        self.engine.set_state(node, PAUSED)

    def resume(self, node: int) -> None:
        self.engine.set_state(node, UP, (self.listeners[node],))
        self.network.woke(node)

    def crash(self, node: int) -> None:
        self.engine.set_state(node, DOWN)
        self.network.gone(node)

    def linked(self, a: int = 0, b: int = 1) -> Rig:
        """Both hold an open link; the clock and the notices start afresh after it."""
        self.links.open(a, b)
        self.links.open(b, a)
        self.run(self.engine.now + 10_000_000)
        self.notices.clear()
        return self

    def times(self) -> list[int]:
        return [time for time, *_ in self.log]

    def numbers(self) -> list[int]:
        return [number for *_, number in self.log]

    def rows(self) -> Counter[Kind]:
        """How many rows of each kind the trace holds so far."""
        self.engine.flush()
        kinds = np.concatenate([batch.kind for batch in self.batches]) if self.batches else np.empty(0, np.uint8)
        return Counter(Kind(int(kind)) for kind in kinds)

    def check_accounts(self) -> None:
        """Whatever was sent or copied was received, dropped or is in flight: in the counters and in the trace."""
        rows = self.rows()
        sent = sum(messages for messages, _ in self.engine.sent.values())
        received = rows[Kind.RECEIVE] + rows[Kind.DUPLICATE]
        assert sent == rows[Kind.SEND]
        assert received == len(self.log)
        assert rows[Kind.DROP] == self.engine.counts[Kind.DROP] == sum(self.engine.describer.drops.values())
        assert sent + rows[Kind.COPY] == received + rows[Kind.DROP] + self.network.in_flight()
