"""The harder case for a bucket queue: every process asks a random neighbour once a period, and is answered.

A third of the events are timers, and no two of them share an instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from epicast.cli.benchmarks.job import DEGREE, LATENCY, SEED, TICK_US, Job, Result
from epicast.cli.benchmarks.stopwatch import stopwatch
from epicast.core import chance
from epicast.core.message import Message
from epicast.core.periodic import Periodic
from epicast.core.roles import handlers
from epicast.sim import graph
from epicast.sim.engine import UP
from epicast.sim.engines import make_engine
from epicast.sim.latency import parse_latency
from epicast.sim.network import Network, NetworkConfig

PERIOD_US = 1_000_000


class Ask(Message, tag=1001):
    layer: ClassVar[str] = "benchmark"


class Answer(Message, tag=1002):
    layer: ClassVar[str] = "benchmark"


class Asker:
    __slots__ = ("answers", "env", "peers", "timer")

    handles: ClassVar[tuple[type[Message], ...]] = (Ask, Answer)

    def __init__(self, env: Any, peers: Sequence[int]) -> None:
        self.env, self.peers = env, peers
        self.answers = 0
        self.timer = Periodic(env, PERIOD_US, self._on_due)
        self.timer.start()

    def _on_due(self) -> None:
        self.env.send(self.peers[int(self.env.rng.random() * len(self.peers))], Ask())

    def on_ask(self, sender: int, msg: Ask) -> None:
        self.env.send(sender, Answer())

    def on_answer(self, sender: int, msg: Answer) -> None:
        self.answers += 1


def timers(job: Job) -> Result:
    engine = make_engine(job.system, TICK_US, chance.stream(SEED, "protocol"))
    engine.use_handlers({message: (0, handle) for message, handle in handlers(Asker).items()})
    rng = chance.stream(SEED, "network")
    config = NetworkConfig(transport="datagram", tick_us=TICK_US)
    network = Network(engine, config, parse_latency(LATENCY).build(rng), rng)
    for peers in graph.directed(job.nodes, DEGREE, chance.stream(SEED, "world")):
        node = engine.add_node()
        engine.set_state(node, UP, (Asker(engine.env(node), peers),))
    with stopwatch() as watch:
        engine.run(job.amount * PERIOD_US)
    assert not network.waiting()
    return Result(engine.events, watch.seconds, watch.cpu_seconds)
