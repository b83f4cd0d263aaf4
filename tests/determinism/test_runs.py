"""One scenario, one seed, one trace, byte for byte: in any process, under any hash seed, on either engine."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from functools import cache

import pytest

SCENARIO = {
    "nodes": 60,
    "warmup": "3s",
    "workload": {"messages": 20, "rate": 10, "pattern": "poisson", "sources": 2, "payload_bytes_max": 2_000},
    "network": {"retransmit_max": 1, "bandwidth_bps": 20_000_000},
    "churn": "const churn 10% each 1s; at 500ms leave 3; at 1s join 3",
    "drain": "5s",
    "fault": [
        {"kind": "partition", "at": "200ms", "until": "700ms", "fraction": 0.3},
        {"kind": "loss", "at": "300ms", "until": "1s", "probability": 0.2},
        {"kind": "pause", "at": "400ms", "until": "1200ms", "count": 3},
        {"kind": "reset", "at": "800ms", "count": 5},
        {"kind": "half-open", "at": "900ms", "count": 5},
    ],
}
SCRIPT = """
import json, sys
from epicast.core.records import Level
from epicast.sim.scenario import Scenario
from epicast.sim.world import World

scenario, engine, seed = json.loads(sys.argv[1])
print(json.dumps(World(Scenario.load(scenario), seed, engine, Level.FULL).run().as_dict()))
"""
STACKS = (
    *("static-flood", "flood", "static-brisa", "brisa"),
    *("scamp-flood", "cyclon-flood", "clon-brisa", "clon-emergent", "simple-gossip"),
    *("epto", "spontaneous", "epto-brisa", "causal-brisa"),
)
COMPILED = importlib.util.find_spec("epicast.sim._engine") is not None


@cache
def run(stack: str, transport: str, *, engine: str = "pure", hash_seed: int = 1, seed: int = 5) -> dict[str, object]:
    """In a process of its own."""
    network = SCENARIO["network"] | {"transport": transport}  # type: ignore[operator]
    argument = json.dumps([{**SCENARIO, "stack": stack, "network": network}, engine, seed])
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, argument], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "engine": "", "events_per_second": None}


@pytest.mark.parametrize("transport", ["tcp", "datagram"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_run_is_the_same_in_another_process_under_another_hash_seed(stack: str, transport: str) -> None:
    first = run(stack, transport)
    assert first == run(stack, transport, hash_seed=4_242)
    assert first["trace_digest"]


@pytest.mark.skipif(not COMPILED, reason="the compiled engine was not built")
@pytest.mark.parametrize("transport", ["tcp", "datagram"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_run_is_the_same_on_the_compiled_engine(stack: str, transport: str) -> None:
    assert run(stack, transport) == run(stack, transport, engine="compiled")


def test_another_seed_is_another_run() -> None:
    assert run("flood", "tcp")["trace_digest"] != run("flood", "tcp", seed=6)["trace_digest"]
