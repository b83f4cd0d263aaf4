"""How long an event takes and what it costs, by the size of the system: `balls.py`, played with several seeds each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from epicast.core import balls_and_bins
from epicast.core.config import Config, PositiveDuration, Probability
from epicast.core.errors import ConfigError
from epicast.sim.bulk.balls import NODES_MAX, PERIOD_US, ROUNDS_MAX, Int64s, OnRound, Spread, spread
from epicast.sim.latency import parse_latency

Progress = Callable[[float, int, int], None]
"""Is told the share of the work that is done and, of the present event, the virtual time and the copies so far."""

Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]


class SizesConfig(Config):
    nodes: tuple[Annotated[int, msgspec.Meta(ge=2, le=NODES_MAX)], ...]
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 7
    seeds: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 5  # from the first on
    period_us: PositiveDuration = PERIOD_US
    latency: str = "quantiles planetlab-epto"
    loss: Probability = 0.0
    c: Annotated[float, msgspec.Meta(ge=0.1, le=10.0)] = 1.25  # as the stack epto has it
    go_on: bool = False
    entry_bytes: Bytes = 40  # our guess: what a ball holds of an event besides its payload
    payload_bytes: Bytes = 1_000

    def check(self) -> None:
        parse_latency(self.latency)
        if not self.nodes:
            raise ConfigError("nodes: expected at least one size")

    @property
    def event_bytes(self) -> int:
        return self.entry_bytes + self.payload_bytes

    def rounds_of(self, nodes: int) -> int:
        return min(ROUNDS_MAX, balls_and_bins.rounds(nodes, self.c))


class Outcome(NamedTuple):
    """Of one event. Delays are medians over the processes that got it, the publisher left out; None if nobody did."""

    unordered_ms: float | None
    last_ms: float | None  # until the last one had it
    global_ms: float | None
    logical_ms: float | None
    copies: float  # sent by a process, on average
    holes: int


class Range(NamedTuple):
    """Over the seeds."""

    mean: float
    low: float
    high: float


class Size(NamedTuple):
    nodes: int
    fanout: int
    rounds: int
    unreached: float  # the share of processes that are not reached, as predicted
    outcomes: tuple[Outcome, ...]

    @property
    def holes(self) -> int:
        return sum(outcome.holes for outcome in self.outcomes)

    def over_seeds(self, name: str) -> Range | None:
        values = [value for outcome in self.outcomes if (value := getattr(outcome, name)) is not None]
        return Range(sum(values) / len(values), min(values), max(values)) if values else None

    def as_dict(self) -> dict[str, Any]:
        ranges = {name: self.over_seeds(name) for name in Outcome._fields[:-1]}
        return {
            "nodes": self.nodes,
            "fanout": self.fanout,
            "rounds": self.rounds,
            **{name: None if found is None else found._asdict() for name, found in ranges.items()},
            "holes": self.holes,
            "unreached_predicted": self.unreached,
        }


def measure(config: SizesConfig, on_progress: Progress | None = None) -> list[Size]:
    """At every size as many events as there are seeds."""
    work = {nodes: nodes * config.rounds_of(nodes) for nodes in config.nodes}
    total, done = config.seeds * sum(work.values()), 0
    outcomes: dict[int, list[Outcome]] = {nodes: [] for nodes in work}
    for nodes, found in outcomes.items():
        for seed in range(config.seed, config.seed + config.seeds):
            on_round = partial(_tell, on_progress, done, nodes, total, config) if on_progress is not None else None
            found.append(outcome(_play(config, nodes, seed, on_round)))
            done += work[nodes]
    return [_size(config, nodes, found) for nodes, found in outcomes.items()]


def _tell(
    on_progress: Progress, done: int, nodes: int, total: int, config: SizesConfig, rounds: int, copies: int
) -> None:
    """Hardly anything is left to do after as many rounds as an event has."""
    here = nodes * min(rounds, config.rounds_of(nodes))
    on_progress((done + here) / total, rounds * config.period_us, copies)


def _play(config: SizesConfig, nodes: int, seed: int, on_round: OnRound | None) -> Spread:
    return spread(
        nodes,
        balls_and_bins.fanout(nodes),
        config.rounds_of(nodes),
        config.period_us,
        parse_latency(config.latency),
        config.loss,
        seed,
        go_on=config.go_on,
        on_round=on_round,
    )


def outcome(run: Spread) -> Outcome:
    got = run.first_us >= 0
    got[0] = False
    first_us, global_us, logical_us = run.first_us[got], run.global_us[got], run.logical_us[got]
    return Outcome(
        unordered_ms=_median_ms(first_us),
        last_ms=float(first_us.max()) / 1000 if len(first_us) else None,
        global_ms=_median_ms(global_us),
        logical_ms=_median_ms(logical_us),
        copies=run.sent / len(run.first_us),
        holes=run.holes,
    )


def _median_ms(times_us: Int64s) -> float | None:
    return float(np.median(times_us)) / 1000 if len(times_us) else None


def _size(config: SizesConfig, nodes: int, outcomes: list[Outcome]) -> Size:
    fanout, rounds = balls_and_bins.fanout(nodes), config.rounds_of(nodes)
    unreached = balls_and_bins.unreached(nodes, fanout, rounds, config.loss)[-1]
    return Size(nodes, fanout, rounds, unreached, tuple(outcomes))
