"""The scenario of a storm, drawn from its number and the name of its stack.

Size, network, faults and churn are drawn alike for every stack; limits are those of its protocols. Stacks that promise
an order get several publishers, who hear each other, and several topics. Stacks that promise no agreement lose
datagrams all along, and have limits that make them give up: there each hole must be told. Orders cost more, total ones
the most, so their storms have fewer processes.
"""

from __future__ import annotations

from random import Random
from typing import Any

from epicast.core.chance import stream
from epicast.core.errors import EpicastError
from epicast.sim.fault_schedule import LASTING
from epicast.sim.scenario import Scenario
from epicast.stacks import stack as stacks
from epicast.stacks.node import heads_wanted
from epicast.stacks.stack import Stack

ORDERS = ("fifo", "causal", "total")
JUDGED = ("agreement", *ORDERS)  # a stack that promises none of them gives a storm nothing to judge

SPELLS = tuple(kind for kind in LASTING if kind != "clock-jump")  # no tree looks at a calendar
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
TOPICS = (("stream",), ("a", "b"), ("a", "b", "c"))
Limits = tuple[dict[str, Any], ...]

FEW_BALLS: Limits = ({}, {}, {"c": 0.5}, {"fanout": 2, "rounds": 4}, {"clock": "global"}, {"drift": 0.5})

LIMITS: dict[str, Limits] = {
    "hyparview": (
        *({}, {}),
        *({"active_size": 3}, {"active_size": 6}, {"expansion": 1.0}, {"passive_size": 8}),
    ),
    "clon": (
        *({}, {}),
        *({"wanted": [2, 1], "target_degree": 3}, {"lease_us": "10s"}, {"balance_interval_us": "1s"}, {"hops_max": 4}),
    ),
    "cyclon": ({}, {}, {"view_size": 8, "exchange_size": 4}, {"exchange_interval": "1s"}),
    "gossip": ({}, {}, {"pull_interval": "500ms"}, {"answers_max": 4}, {"expected_nodes": 8}),
    "flood": ({}, {}, {"ahead_max": 4}),
    "balls": FEW_BALLS,
    "fifo": ({}, {}, {"settle": "1s"}),
    "causal": ({}, {}, {"settle": "1s"}, {"barrier_max": 2}),
    "epto": ({}, {}, {"scope": "all"}),
    "epto-ids": ({}, {"payload_wait": "1s"}, *({"balls": limits} for limits in FEW_BALLS[2:])),
}
"""By protocol. Limits are where bugs live; none of them may make a stack give up what it promises."""

GIVING_UP: dict[str, Limits] = {
    "causal": (
        *({}, {"patience": "2s", "settle": "500ms", "stable": "10s"}),
        *({"ahead_max": 4}, {"waiting_max": 8}, {"barrier_max": 2}),
    ),
}
"""Where no agreement is promised."""


def playable() -> list[str]:
    """The named stacks that promise something which a storm can break."""
    return [name for name in stacks.names() if _is_judged(stacks.load(name))]


def _is_judged(stack: Stack) -> bool:
    return any(promise in JUDGED for promise in stack.promises)


def draw(seed: int, stack: str = "brisa") -> Scenario:
    made = stacks.load(stack)
    if not _is_judged(made):
        known = ", ".join(playable())
        raise EpicastError(f"a storm needs a stack that promises agreement or an order: {known}; got {stack!r}")
    rng = stream(seed, "storm")
    nodes = round(8 * _spread(made) ** rng.random())  # small ones as likely as large ones
    datagrams = rng.random() < 0.25
    seconds = rng.randint(10, 30)
    rate = rng.choice((1, 2, 5))
    faults = [_fault(rng, seconds) for _ in range(rng.randint(1, 5))]
    settings: dict[str, Any] = {
        "stack": stack,
        "seed": seed,
        "nodes": nodes,
        "latency": rng.choice(AREAS if made.membership.protocol == "clon" else LATENCIES),
        "network": {
            "transport": "datagram" if datagrams else "tcp",
            "detection": rng.choice(("200ms", "1s", "3s")),
            "duplication": 0.02 if datagrams else 0.0,
            "reordering": 0.05 if datagrams else 0.0,
        },
        "overrides": _limits(rng, made) | heads_wanted(made),
        "warmup": "15s",
        "workload": {"messages": seconds * rate, "rate": rate, "sources": 2 if rng.random() < 0.2 else 1},
        "churn": _churn(rng),
        "fault": faults,
        "drain": 0,
    }
    _add_for_orders(stream(seed, "storm of orders"), settings, made, seconds)
    return Scenario.load(settings)


def _spread(stack: Stack) -> int:
    """How many times as large as the smallest storm the largest is."""
    if "total" in stack.promises:
        return 4
    return 8 if _is_ordered(stack) else 16


def _is_ordered(stack: Stack) -> bool:
    return any(order in stack.promises for order in ORDERS)


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


def _limits(rng: Random, stack: Stack) -> dict[str, dict[str, Any]]:
    """Small views and plain expansion now and then."""
    membership, below = stack.membership.protocol, stack.dissemination.protocol
    limits = {"membership": rng.choice(LIMITS[membership])}
    if below == "brisa":
        first_come = {} if membership == "clon" else {"strategy": "delay-aware"}
        limits["dissemination"] = rng.choice(({}, {}, first_come, {"symmetric": False}))
    else:
        limits["dissemination"] = rng.choice(LIMITS[below])
    if stack.ordering is not None:
        order = stack.ordering.protocol
        table = LIMITS if "agreement" in stack.promises else LIMITS | GIVING_UP
        limits["ordering"] = rng.choice(table[order])
    return limits


def _churn(rng: Random) -> str:
    if rng.random() < 0.4:
        return ""
    how = rng.choice(("", " leave"))
    return f"const churn {rng.choice((3, 5, 10, 20))}% each 10s{how}"


def _add_for_orders(rng: Random, settings: dict[str, Any], stack: Stack, seconds: int) -> None:
    """What other stacks do without, from a stream of chance of its own: their storms stay what they were."""
    promises, network = stack.promises, settings["network"]
    if _is_ordered(stack):
        rate = rng.choice((4, 8, 16))  # with latencies of up to 100 ms: some answers overtake their questions
        settings["workload"] = {
            "messages": seconds * rate,
            "rate": rate,
            "pattern": rng.choice(("rate", "poisson", "burst")),
            "burst_size": rate,
            "sources": rng.randint(2, min(8, settings["nodes"] // 2)),
            "source_order": "random",
            "topics": list(rng.choice(TOPICS)),
            "payload_bytes": 20,
        }
    if "agreement" not in promises and network["transport"] == "datagram":
        network["loss"] = rng.choice((0.0, 0.05, 0.2))
    if "total" in promises and rng.random() < 0.4:
        at = rng.uniform(0, seconds * 0.8)
        jump = {"kind": "clock-jump", "at": f"{at:.3f}s", "until": f"{at + rng.uniform(0.5, 15):.3f}s"}
        settings["fault"].append({**jump, "fraction": 0.3, "delay": rng.choice(("500ms", "1h"))})
