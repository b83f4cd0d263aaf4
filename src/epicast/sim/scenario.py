"""A scenario: all that a run depends on besides its seed, as data.

    stack = "brisa"
    nodes = 512
    latency = "uniform 10ms 100ms"
    churn = "const churn 3% each 10s"
    [workload]
    messages = 100
    [[fault]]
    kind = "pause"
    at = "5s"
    until = "8s"
    fraction = 0.1

A run joins its processes one after the other, lets the overlay settle, publishes while churn and faults strike, and
waits until everyone has everything. Times of churn and faults count from the start of the workload.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration
from epicast.core.errors import ConfigError
from epicast.sim import toml_text
from epicast.sim.churn import parse_churn
from epicast.sim.fault_schedule import FaultConfig
from epicast.sim.latency import LatencyConfig, parse_latency
from epicast.sim.network import NetworkConfig
from epicast.sim.workload import WorkloadConfig
from epicast.stacks import stack as stacks

S = TypeVar("S", bound="Scenario")
Table = dict[str, Any]


class JoinsConfig(Config, frozen=True):
    """How processes come in. The graph is for stacks whose membership is `static`: there all are up from the start."""

    interval_us: PositiveDuration = 10_000  # our guess: 100 a second
    contacts: Annotated[int, msgspec.Meta(ge=1)] = 3  # drawn among those that are up, like a list of seeds; our guess
    degree: Annotated[int, msgspec.Meta(ge=1)] = 9  # of the given graph
    graph: Literal["directed", "symmetric"] = "directed"
    newcomers: Annotated[int, msgspec.Meta(ge=0)] = 0  # more, that know nobody, from the start of the workload on
    newcomer_interval_us: PositiveDuration = 5_000_000  # between two of them; our guess: each has found its place


class Scenario(Config, frozen=True):
    stack: str | Table = "brisa"  # a named stack, or a stack's table
    overrides: dict[str, Table] = {}  # settings of its roles to replace: {"membership": {"active_size": 5}}
    nodes: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 256
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 7  # where the run is given none
    latency: str | Table = "uniform 10ms 100ms"  # our guess: from one site to across continents
    network: NetworkConfig = NetworkConfig()
    joins: JoinsConfig = JoinsConfig()
    warmup_us: Duration = 15_000_000  # after the last join; our guess: a few shuffles
    workload: WorkloadConfig = WorkloadConfig()
    churn: str = ""  # a script
    protect_sources: bool = True  # churn and drawn faults spare the publishers
    fault: tuple[FaultConfig, ...] = ()
    drain_us: Duration = 20_000_000  # at most so long after the last publication and fault
    snapshot_interval_us: Duration = 0  # of pictures of the overlay, from the start of the workload; 0: only at the end
    codec_check: bool = False  # send every message through the codec, to prove that both sides see the same

    def check(self) -> None:
        """The parts that are texts or tables must make sense too."""
        self.build_stack()
        self.build_latency()
        parse_churn(self.churn)
        ids = self.workload.source_ids
        if self.workload.source_count > self.nodes:
            raise ConfigError(f"workload.sources: expected at most nodes = {self.nodes}")
        if ids and max(ids) >= self.nodes:
            raise ConfigError(f"workload.source_ids: expected numbers below nodes = {self.nodes}, got {max(ids)}")

    def build_stack(self) -> stacks.Stack:
        if isinstance(self.stack, str):
            return stacks.load(self.stack, self.overrides)
        return stacks.from_table(self.stack, self.overrides)

    def build_latency(self) -> LatencyConfig:
        if isinstance(self.latency, str):
            return parse_latency(self.latency)
        return LatencyConfig.load(self.latency, "latency")

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The publishers: those named, or the first ones that join."""
        return self.workload.source_ids or tuple(range(self.workload.sources))

    # Files

    @classmethod
    def from_toml(cls: type[S], text: str) -> S:
        try:
            settings = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not TOML: {error}") from None
        except RecursionError:
            raise ConfigError("not TOML: nested too deep") from None
        return cls.load(settings)

    @classmethod
    def read(cls: type[S], path: str | Path) -> S:
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}; give a scenario file") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: not UTF-8 text; give a scenario file") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    def as_dict(self) -> dict[str, Any]:
        """Every setting, in plain types; what `load` makes this scenario from again."""
        plain: dict[str, Any] = _without_empty(msgspec.to_builtins(self))
        return plain

    def to_toml(self) -> str:
        return toml_text.write(self.as_dict())


def _without_empty(value: Any) -> Any:
    """Nothing given, be it None, no table or no list, is always the default."""
    if isinstance(value, dict):
        kept = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, {}, [])}
    return [_without_empty(item) for item in value] if isinstance(value, (list, tuple)) else value
