"""Which jobs a benchmark of the engine is made of, and how often each one is repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epicast.cli.benchmarks.job import DEGREE, Job, System

HEADLINE_NODES = 10_000
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
MEMORY_NODES = 100_000
ROUNDS = 3
# Two to five seconds each, on a machine of middling speed.
FLOOD_EVENTS: dict[System, int] = {"pure": 1_800_000, "compiled": 3_600_000, "simpy": 450_000}
TIMER_ROUNDS: dict[System, int] = {"pure": 20, "compiled": 60, "simpy": 20}
STREAM_MESSAGES = 20
OVERLAYS = ("scamp-flood", "clon-flood")


@dataclass(frozen=True)
class Case:
    job: Job
    rounds: int


@dataclass(frozen=True)
class Plan:
    engines: tuple[System, ...]  # ours that there are, the default one last
    sizes: tuple[int, ...] = SIZES
    rounds: int = ROUNDS
    messages: int | None = None  # of every measurement, instead of what fits its system
    quick: bool = False

    @property
    def default(self) -> System:
        return self.engines[-1]

    @property
    def headline_nodes(self) -> int:
        """The size at which the ratios are taken."""
        return HEADLINE_NODES if HEADLINE_NODES in self.sizes else max(self.sizes)

    @property
    def stream_sizes(self) -> tuple[int, ...]:
        """Building an overlay takes its time: not beyond the headline."""
        return tuple(nodes for nodes in self.sizes if nodes <= self.headline_nodes)

    @property
    def memory_nodes(self) -> int:
        return MEMORY_NODES if HEADLINE_NODES in self.sizes else max(self.sizes)

    def cases(self) -> list[Case]:
        return [
            *self._floods(),
            *self._traced_floods(),
            *self._timers(),
            *self._streams(),
            *self._overlays(),
            *self._memory(),
        ]

    def _floods(self) -> Iterator[Case]:
        for nodes in self.sizes:
            for system in (*self.engines, "simpy"):
                yield Case(self.flood(system, nodes), self.rounds)

    def _traced_floods(self) -> Iterator[Case]:
        for system in self.engines:
            yield Case(self.flood(system, self.headline_nodes, traced=True), self.rounds)

    def _timers(self) -> Iterator[Case]:
        for system in (*self.engines, "simpy"):
            yield Case(self.timers(system), self.rounds)

    def _streams(self) -> Iterator[Case]:
        """Most of their time is the set-up: fewer rounds, and the quick plan leaves the slower engine out."""
        for system in (self.default,) if self.quick else self.engines:
            for traced in (False, True):
                yield Case(self.stream(system, traced=traced), min(2, self.rounds) if system == self.default else 1)
        for nodes in self.stream_sizes:
            if nodes != self.headline_nodes:
                yield Case(self.stream(self.default, nodes), self.rounds)

    def _overlays(self) -> Iterator[Case]:
        for stack in OVERLAYS:
            yield Case(self.overlay(stack), 1)

    def _memory(self) -> Iterator[Case]:
        for system in self.engines:
            yield Case(self.memory(system), 1)

    # The jobs, for whoever looks for their results

    def flood(self, system: System, nodes: int, *, traced: bool = False) -> Job:
        effort = FLOOD_EVENTS[system] // (2 if self.quick else 1)
        return Job("flood", system, nodes, self.messages or max(1, effort // (DEGREE * nodes)), traced=traced)

    def timers(self, system: System) -> Job:
        effort = TIMER_ROUNDS[system] // (2 if self.quick else 1)
        return Job("timers", system, self.headline_nodes, self.messages or effort)

    def stream(self, system: System, nodes: int | None = None, *, traced: bool = False) -> Job:
        amount = self.messages or STREAM_MESSAGES
        return Job("stream", system, nodes or self.headline_nodes, amount, stack="brisa", traced=traced)

    def overlay(self, stack: str) -> Job:
        """At the largest size: building it is the measurement."""
        return Job("overlay", self.default, max(self.sizes), stack=stack)

    def memory(self, system: System) -> Job:
        return Job("memory", system, self.memory_nodes)


def make_plan(sizes: Sequence[int], messages: int | None, rounds: int, *, quick: bool) -> Plan:
    from epicast.core.errors import EpicastError
    from epicast.sim.engines import engine_class

    engines: tuple[System, ...] = ("pure",)
    try:
        engine_class("compiled")
        engines = ("pure", "compiled")
    except EpicastError:
        pass  # it was not built
    chosen = tuple(sorted(set(sizes))) or (QUICK_SIZES if quick else SIZES)
    if chosen[0] <= DEGREE:
        raise EpicastError(f"--nodes: expected more than {DEGREE}, the links of each node; got {chosen[0]}")
    return Plan(engines, chosen, rounds, messages, quick)
