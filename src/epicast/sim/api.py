"""One call from Python: describe a run, get its summary.

from epicast import simulate

for stack in ("flood", "brisa"):
    summary = simulate(stack, nodes=512, churn="const churn 3% each 10s")
    print(stack, summary.delivery_ratio, summary.copies_per_delivery, summary.latency_ms["p99"])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicast.core.records import Level
from epicast.sim.scenario import Scenario
from epicast.sim.summary import Summary
from epicast.sim.world import World


def simulate(
    stack: str | Mapping[str, Any] = "brisa",
    nodes: int = 256,
    messages: int = 50,
    rate: float = 5,
    payload: int = 1000,
    churn: str = "",
    seed: int = 7,
    *,
    engine: str = "auto",
    level: Level = Level.DELIVERIES,
    **scenario: Any,
) -> Summary:
    """Run `messages` of `payload` bytes, `rate` a second, and tell how it went. Whatever else a scenario can say may
    follow by name, as in a scenario file: `latency="constant 50ms"`, `network={"loss": 0.01}`."""
    workload = {"messages": messages, "rate": rate, "payload_bytes": payload, **scenario.pop("workload", {})}
    settings = {"stack": stack, "nodes": nodes, "seed": seed, "churn": churn, "workload": workload, **scenario}
    return World(Scenario.load(settings), engine=engine, level=level).run()
