"""Storms: runs whose size, network and faults are all drawn from one number.

A storm has three phases: faults (crashes, joins and leaves, partitions, loss, clogs, pauses, resets), then everything
heals, then the run must come to rest within a bound. Safety is checked all along, the rest at the end: one connected
symmetric overlay, one parent for each process, no cycle, no orphan, nothing delivered twice, and nothing lost for
processes that stayed. `epicast storm --seed N` plays one again, event by event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from epicast.core.chance import stream
from epicast.core.errors import EpicastError
from epicast.core.records import Kind, Level
from epicast.sim import checks
from epicast.sim.fault_schedule import LASTING
from epicast.sim.scenario import Scenario
from epicast.sim.summary import Summary
from epicast.sim.world import World
from epicast.trace.batch import Batch

LOOK_US = 1_000_000  # between two checks of safety
MOMENT_US = 6_000_000  # within which both sides of a link agree on it
SEEDS_US = 20_000_000  # between two looks at seeds
REST_US = 150_000_000  # within which everything must be in order after the faults

SPELLS = tuple(kind for kind in LASTING if kind != "clock-jump")  # no tree looks at a calendar
STACKS = ("brisa", "brisa-delay", "clon-brisa")
LATENCIES = (
    "constant 20ms",
    "uniform 1ms 20ms",
    "uniform 10ms 100ms",
    "lognormal 40ms 0.5",
    "quantiles planetlab-epto",
)
AREAS = (
    "areas 1 1ms 1ms",
    "areas 3 1ms 50ms",
    "areas 5 1ms 50ms",
    'areas 8 1ms "areas 2 20ms 80ms"',
    "areas 50 1ms 30ms",
)
HYPARVIEW_LIMITS: tuple[dict[str, Any], ...] = (
    *({}, {}),
    *({"active_size": 3}, {"active_size": 6}, {"expansion": 1.0}, {"passive_size": 8}),
)
CLON_LIMITS: tuple[dict[str, Any], ...] = (
    *({}, {}),
    *({"wanted": [2, 1], "target_degree": 3}, {"lease_us": "10s"}, {"balance_interval_us": "1s"}, {"hops_max": 4}),
)


@dataclass
class Verdict:
    """What a storm left behind."""

    seed: int
    scenario: Scenario
    violations: list[str] = field(default_factory=list)
    summary: Summary | None = None
    rest_us: int = 0  # how long it took to come to rest after the last fault

    @property
    def passed(self) -> bool:
        return not self.violations


def draw(seed: int, stack: str = "brisa") -> Scenario:
    """The scenario of a storm: a function of its number."""
    if stack not in STACKS:
        raise EpicastError(f"a storm needs a stack that mends what was lost: {', '.join(STACKS)}; got {stack!r}")
    rng = stream(seed, "storm")
    nodes = round(8 * 16 ** rng.random())  # 8 to 128, small ones as likely as large ones
    datagrams = rng.random() < 0.25
    seconds = rng.randint(10, 30)
    rate = rng.choice((1, 2, 5))
    faults = [_fault(rng, seconds) for _ in range(rng.randint(1, 5))]
    settings: dict[str, Any] = {
        "stack": stack,
        "seed": seed,
        "nodes": nodes,
        "latency": rng.choice(AREAS if stack.startswith("clon") else LATENCIES),
        "network": {
            "transport": "datagram" if datagrams else "tcp",
            "detection": rng.choice(("200ms", "1s", "3s")),
            "duplication": 0.02 if datagrams else 0.0,
            "reordering": 0.05 if datagrams else 0.0,
        },
        "overrides": _limits(rng, stack),
        "warmup": "15s",
        "workload": {"messages": seconds * rate, "rate": rate, "sources": 2 if rng.random() < 0.2 else 1},
        "churn": _churn(rng),
        "fault": faults,
        "drain": 0,
    }
    return Scenario.load(settings)


def _fault(rng: Random, seconds: int) -> dict[str, Any]:
    kind = rng.choice((*SPELLS, "crash", "crash", "reset", "half-open"))
    at = rng.uniform(0, seconds * 0.8)
    fault: dict[str, Any] = {"kind": kind, "at": f"{at:.3f}s"}
    if kind in SPELLS:
        fault["until"] = f"{at + rng.uniform(0.5, 15):.3f}s"
    if kind == "loss":
        fault["probability"] = rng.choice((0.01, 0.05, 0.2))
    elif kind == "isolate":
        fault["count"] = 1
    else:
        fault["fraction"] = rng.choice((0.1, 0.3, 0.5))
    if kind == "clog":
        fault["delay"] = f"{rng.uniform(0.2, 5):.3f}s"
    return fault


def _limits(rng: Random, stack: str) -> dict[str, dict[str, Any]]:
    """Small views and plain expansion now and then: limits are where bugs live."""
    clon = stack.startswith("clon")
    membership = rng.choice(CLON_LIMITS if clon else HYPARVIEW_LIMITS)
    brisa = rng.choice(({}, {}, {} if clon else {"strategy": "delay-aware"}, {"symmetric": False}))
    return {"membership": membership, "dissemination": brisa}


def _churn(rng: Random) -> str:
    if rng.random() < 0.4:
        return ""
    how = rng.choice(("", " leave"))
    return f"const churn {rng.choice((3, 5, 10, 20))}% each 10s{how}"


class Storm:
    """Plays one storm and judges it."""

    def __init__(self, seed: int, stack: str = "brisa", engine: str = "auto") -> None:
        self.verdict = Verdict(seed, draw(seed, stack))
        self.world = World(
            self.verdict.scenario, seed, engine, Level.DELIVERIES, replay=f"epicast storm --stack {stack} --seed {seed}"
        )
        self.delivered: dict[tuple[int, int, int], int] = {}
        self.odd_since: dict[str, int] = {}
        self.world.sinks.append(self._take)

    def play(self, on_progress: Callable[[float, int, int], None] | None = None) -> Verdict:
        world, verdict = self.world, self.verdict
        world.call_at(LOOK_US, self._look)
        if verdict.scenario.build_stack().membership.protocol == "clon":
            world.call_at(SEEDS_US, self._look_up_seeds)
        world.run(on_progress=on_progress)
        healed_us = world.now_us
        world.network.heal()
        for node in checks.stranded(world):  # as its operator would: it knows nobody who is alive
            world.crash(node)
        verdict.rest_us = self._come_to_rest(healed_us + REST_US) - healed_us
        verdict.violations += self._unrest()
        verdict.summary = world.summary()
        verdict.violations += self._repeated()
        return verdict

    def _come_to_rest(self, limit_us: int) -> int:
        """Until everything is in order, and stays so for long enough to tell a lasting disagreement from a link that is
        being made. Returns since when."""
        world = self.world
        while True:
            in_time = world.run_while(lambda: bool(self._unrest()), LOOK_US, limit_us)
            since_us = world.now_us
            troubled = not in_time or world.interrupted
            while not troubled and world.now_us < since_us + 2 * MOMENT_US:
                world.run_until(world.now_us + LOOK_US)
                troubled = bool(self._unrest()) or world.interrupted
            if not troubled or world.now_us >= limit_us or world.interrupted:
                return since_us

    def _look(self) -> None:
        self.verdict.violations += [f"{self.world.now_us} us: {v}" for v in checks.unsafe(self.world)][:5]
        if len(self.verdict.violations) < 20:
            self.world.call_at(self.world.now_us + LOOK_US, self._look)

    def _look_up_seeds(self) -> None:
        """As the driver of a live node does: it asks a seed whether it is there, and tells the membership."""
        for node in self.world.up:
            members: Any = self.world.nodes[node].membership
            alive = [seed for seed in members.seeds if seed in self.world.nodes]
            if alive:
                members.meet(self.world.chance.choice(alive))
        self.world.call_at(self.world.now_us + SEEDS_US, self._look_up_seeds)

    def _unrest(self) -> list[str]:
        """What is not in order yet."""
        world = self.world
        unrest = checks.overlay(world) or self._lasting() or checks.trees(world)
        if not unrest and not world.all_delivered():
            unrest = ["messages are missing"]
        return unrest

    def _lasting(self) -> list[str]:
        """What may look wrong for a moment, while links are made and ended, but has done so for longer."""
        now_us = self.world.now_us
        odd = checks.one_sided(self.world) + checks.thin(self.world)
        self.odd_since = {line: self.odd_since.get(line, now_us) for line in odd}
        return [line for line, since_us in self.odd_since.items() if since_us <= now_us - MOMENT_US]

    def _repeated(self) -> list[str]:
        twice = [key for key, times in self.delivered.items() if times > 1]
        return [f"node {n} delivered message {q} of {s} {self.delivered[n, s, q]} times" for n, s, q in twice[:5]]

    def _take(self, batch: Batch) -> None:
        rows = batch.kind == int(Kind.DELIVER)
        columns = (batch.node[rows], batch.source[rows], batch.seq[rows])
        for key in zip(*(column.tolist() for column in columns), strict=True):
            self.delivered[key] = self.delivered.get(key, 0) + 1
