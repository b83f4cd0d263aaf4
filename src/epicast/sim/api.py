"""One call from Python: describe a run, get its summary.

from epicast import simulate

for stack in ("flood", "brisa"):
    summary = simulate(stack, nodes=512, churn="const churn 3% each 10s")
    print(stack, summary.delivery_ratio, summary.copies_per_delivery, summary.latency_ms["p99"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from epicast.core.config import checked
from epicast.core.errors import ConfigError
from epicast.core.records import Level
from epicast.sim.scenario import Scenario
from epicast.sim.summary import Summary
from epicast.sim.world import World

Table = Mapping[str, Any]
LevelName = Literal["off", "deliveries", "full"]


class ScenarioSettings(TypedDict, total=False):
    """What else a scenario can say. Durations are microseconds or texts like "20s", and may go without `_us`."""

    overrides: Mapping[str, Table]
    latency: str | Table
    network: Table
    joins: Table
    warmup: str | int
    warmup_us: str | int
    workload: Table
    protect_sources: bool
    fault: Sequence[Table]
    drain: str | int
    drain_us: str | int
    snapshot_interval: str | int
    snapshot_interval_us: str | int
    codec_check: bool


def simulate(
    stack: str | Table = "brisa",
    nodes: int = 256,
    messages: int = 50,
    rate: float = 5,
    payload: int = 1000,
    churn: str = "",
    seed: int = 7,
    *,
    engine: Literal["auto", "pure", "compiled"] = "auto",
    level: Level | LevelName = Level.DELIVERIES,
    **scenario: Unpack[ScenarioSettings],
) -> Summary:
    """Run `messages` of `payload` bytes, `rate` a second, and tell how it went. Whatever else a scenario can say may
    follow by name, as in a scenario file: `latency="constant 50ms"`, `network={"loss": 0.01}`."""
    rest: dict[str, Any] = {**scenario}
    more = rest.pop("workload", {})
    if not isinstance(more, Mapping):
        raise ConfigError(f"workload: expected a table, got {more!r}"[:200])
    workload = {"messages": messages, "rate": rate, "payload_bytes": payload, **more}
    settings = {"stack": stack, "nodes": nodes, "seed": seed, "churn": churn, "workload": workload, **rest}
    return World(Scenario.load(settings), engine=checked("engine", engine, str), level=_level(level)).run()


def _level(level: object) -> Level:
    if isinstance(level, int) and not isinstance(level, bool) and level in list(Level):
        return Level(level)
    names = [each.name.lower() for each in Level]
    if level not in names:
        raise ConfigError(f"level: expected one of {', '.join(names)}, got {level!r}"[:200])
    return Level[str(level).upper()]
