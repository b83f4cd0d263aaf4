"""What the measurements come to: ratios of one run on one machine, which is all that can be compared, and targets.

Ratios of speed are of processor time, which on a busy machine says more than the wall clock. What a trace costs is told
by the wall clock, since its writer works beside the run; the report has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from epicast.cli.benchmarks.job import Job, Result, System
from epicast.cli.benchmarks.plan import Plan

Results = Mapping[Job, Result]


class Target(NamedTuple):
    value: float
    at_least: bool  # else at most
    meaning: str

    def met_by(self, measured: float | None) -> bool | None:
        """None: it was not measured."""
        if measured is None:
            return None
        return measured >= self.value if self.at_least else measured <= self.value


TARGETS = {
    "pure_vs_simpy": Target(4.0, True, "speed of the pure engine, flooding, over SimPy's"),
    "compiled_vs_simpy": Target(12.0, True, "speed of the compiled engine, flooding, over SimPy's"),
    "brisa_vs_flood": Target(0.25, True, "speed of HyParView and BRISA over that of flooding, default engine"),
    "traced_vs_untraced": Target(2.0, False, "time with a full trace over time without, default engine, worst case"),
    "scamp_build": Target(60.0, False, "processor seconds a million events, building a Scamp overlay"),
    "clon_build": Target(60.0, False, "processor seconds a million events, building a CLON overlay"),
    "bytes_per_idle_node": Target(1536, False, "memory of a process that does nothing, default engine"),
}


def ratios(plan: Plan, results: Results) -> dict[str, float | None]:
    nodes, default = plan.headline_nodes, plan.default
    simpy = _speed(results, plan.flood("simpy", nodes))
    flood = {system: _speed(results, plan.flood(system, nodes)) for system in ("pure", "compiled")}
    traced = [cost[default]["wall"] for cost in traced_vs_untraced(plan, results).values() if default in cost]
    memory = results.get(plan.memory(default))
    values = {
        "pure_vs_simpy": _ratio(flood["pure"], simpy),
        "compiled_vs_simpy": _ratio(flood["compiled"], simpy),
        "brisa_vs_flood": _ratio(_speed(results, plan.stream(default)), flood[default]),
        "traced_vs_untraced": max(traced, default=None),
        "scamp_build": _seconds_a_million(results, plan.overlay("scamp-flood")),
        "clon_build": _seconds_a_million(results, plan.overlay("clon-flood")),
        "bytes_per_idle_node": None if memory is None else memory.bytes_per_node,
    }
    return {name: None if value is None else round(value, 3) for name, value in values.items()}


def brisa_vs_flood_by_nodes(plan: Plan, results: Results) -> dict[int, float]:
    """At every size that both were measured at, with the default engine: a large world does not fit into the caches."""
    found = {}
    for nodes in plan.stream_sizes:
        ratio = _ratio(
            _speed(results, plan.stream(plan.default, nodes)), _speed(results, plan.flood(plan.default, nodes))
        )
        if ratio is not None:
            found[nodes] = round(ratio, 3)
    return found


def traced_vs_untraced(plan: Plan, results: Results) -> dict[str, dict[System, dict[str, float]]]:
    """By workload, engine and clock."""
    costs: dict[str, dict[System, dict[str, float]]] = {"flood": {}, "brisa": {}}
    for system in plan.engines:
        nodes = plan.headline_nodes
        pairs = {
            "flood": (plan.flood(system, nodes, traced=True), plan.flood(system, nodes)),
            "brisa": (plan.stream(system, traced=True), plan.stream(system)),
        }
        for name, (traced, untraced) in pairs.items():
            if traced in results and untraced in results:
                costs[name][system] = _cost(results[traced], results[untraced])
    return costs


def _cost(traced: Result, untraced: Result) -> dict[str, float]:
    return {
        "processor": round(traced.cpu_seconds / untraced.cpu_seconds, 3),
        "wall": round(traced.seconds / untraced.seconds, 3),
    }


def verdicts(
    measured: Mapping[str, float | None], targets: Mapping[str, Target] = TARGETS
) -> dict[str, dict[str, object]]:
    return {
        name: {
            "measured": measured[name],
            "target": target.value,
            "at_least": target.at_least,
            "met": target.met_by(measured[name]),
            "meaning": target.meaning,
        }
        for name, target in targets.items()
    }


def _speed(results: Results, job: Job) -> float | None:
    result = results.get(job)
    return None if result is None else result.events_per_cpu_second


def _seconds_a_million(results: Results, job: Job) -> float | None:
    speed = _speed(results, job)
    return 1e6 / speed if speed else None


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None
