"""Faults at their time: what a scenario's `[[fault]]` tables mean.

    [[fault]]
    kind = "partition"
    at = "20s"            # from the start of the workload
    until = "25s"         # nothing: to the end of the run
    fraction = 0.3        # or count = 5, or nodes = [3, 4]

Victims given by number or share are drawn when the fault begins, among the processes that are up and not protected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Annotated, Literal, Protocol

import msgspec

from epicast.core.config import Config, Duration, Probability
from epicast.core.errors import ConfigError
from epicast.sim.faults import Clog, Isolate, Partition, Rule
from epicast.sim.network import Network

LASTING = ("partition", "one-way", "isolate", "clog", "pause", "loss", "clock-jump")
DELAYED = ("clog", "clock-jump")


class FaultConfig(Config, frozen=True):
    kind: Literal[
        "partition", "one-way", "isolate", "clog", "pause", "crash", "reset", "half-open", "loss", "clock-jump"
    ]
    at_us: Duration
    until_us: Duration | None = None
    fraction: Probability | None = None
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    nodes: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] | None = None
    delay_us: Duration = 0  # of a clog; by how much a clock jumps ahead, and back at the end
    probability: Probability = 0.0  # of loss

    def check(self) -> None:
        if self.until_us is not None and self.kind not in LASTING:
            raise ConfigError(f"until: a {self.kind} happens once and has no end; leave it out")
        if self.until_us is not None and self.until_us <= self.at_us:
            raise ConfigError(f"until: expected a time after at = {self.at_us} us, got {self.until_us} us")
        given = [key for key in ("fraction", "count", "nodes") if getattr(self, key) is not None]
        if self.kind == "loss" and given:
            raise ConfigError(f"{given[0]}: loss strikes the whole network; leave it out")
        if self.kind != "loss" and len(given) != 1:
            raise ConfigError(f"expected one of fraction, count and nodes, got {' and '.join(given) or 'none'}")
        if (self.kind in DELAYED) != (self.delay_us > 0):
            raise ConfigError("delay: give one to a clog or a clock-jump, and to nothing else")
        if (self.kind == "loss") != (self.probability > 0.0):
            raise ConfigError("probability: give one above 0 to a loss, and to nothing else")

    @property
    def end_us(self) -> int:
        """When it has begun and, if it ends, ended."""
        return self.at_us if self.until_us is None else self.until_us


class Processes(Protocol):
    """What a fault does to processes, and whom it may strike."""

    @property
    def up(self) -> Sequence[int]: ...
    @property
    def protected(self) -> Collection[int]: ...
    def crash(self, node: int) -> None: ...
    def pause(self, node: int) -> None: ...
    def resume(self, node: int) -> None: ...
    def set_clock(self, node: int, ahead_us: int) -> None: ...


class FaultSchedule:
    """Begins and ends faults. `at` is the clock: it calls a function at a time of the run."""

    def __init__(
        self, processes: Processes, network: Network, rng: Random, at: Callable[..., object], start_us: int
    ) -> None:
        self.processes, self.network, self.rng = processes, network, rng
        self._at, self._start_us = at, start_us

    def add(self, fault: FaultConfig) -> None:
        self._at(self._start_us + fault.at_us, self._begin, fault)

    def _begin(self, fault: FaultConfig) -> None:
        end = self._start(fault, self._victims(fault))
        if end is not None and fault.until_us is not None:
            self._at(self._start_us + fault.until_us, end)

    def _victims(self, fault: FaultConfig) -> list[int]:
        if fault.nodes is not None:
            up = set(self.processes.up)
            return [node for node in fault.nodes if node in up]
        protected = self.processes.protected
        choice = [node for node in self.processes.up if node not in protected]
        count = round((fault.fraction or 0.0) * len(self.processes.up)) if fault.count is None else fault.count
        return sorted(self.rng.sample(choice, min(count, len(choice))))

    def _start(self, fault: FaultConfig, victims: list[int]) -> Callable[[], None] | None:
        """Returns what ends it, if it lasts."""
        match fault.kind:
            case "partition" | "one-way":
                return self._rule(Partition(frozenset(victims), one_way=fault.kind == "one-way"))
            case "isolate":
                return self._rule(Isolate(frozenset(victims)))
            case "clog":
                return self._rule(Clog(frozenset(victims), fault.delay_us))
            case "pause":
                return self._pause(victims)
            case "loss":
                return self._loss(fault.probability)
            case "clock-jump":
                return self._jump(victims, fault.delay_us)
            case "crash":
                for node in victims:
                    self.processes.crash(node)
            case "reset":
                for node, peer in self._links(victims):
                    self.network.links.reset(node, peer)
            case "half-open":
                for node, peer in self._links(victims):
                    self.network.links.half_open(peer, node)
        return None

    def _rule(self, rule: Rule) -> Callable[[], None]:
        self.network.add_rule(rule)
        return lambda: self.network.remove_rule(rule)

    def _loss(self, probability: float) -> Callable[[], None]:
        before = self.network.config.loss
        self.network.set_loss(probability)
        return lambda: self.network.set_loss(before)

    def _jump(self, victims: list[int], by_us: int) -> Callable[[], None]:
        self._set_clocks(victims, by_us)
        return lambda: self._set_clocks(victims, 0)

    def _set_clocks(self, victims: list[int], ahead_us: int) -> None:
        for node in victims:
            self.processes.set_clock(node, ahead_us)

    def _pause(self, victims: list[int]) -> Callable[[], None]:
        for node in victims:
            self.processes.pause(node)
        return lambda: self._resume(victims)

    def _resume(self, victims: list[int]) -> None:
        for node in victims:
            self.processes.resume(node)

    def _links(self, victims: list[int]) -> list[tuple[int, int]]:
        return [(node, peer) for node in victims for peer in self.network.links.held_by(node)]
