"""Run folders, measured: for the tests of metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epicast.core.records import Level
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import Verdict, judge
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.metrics import Measures, measure
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.run import RunFolder


def simulated(folder: Path, level: Level = Level.FULL, **scenario: Any) -> RunFolder:
    scenario = {"stack": "brisa", "nodes": 32, "seed": 3, "warmup": "5s", "workload": {"messages": 10}} | scenario
    play_into(folder, World(Scenario.load(scenario), level=level), ["test"])
    return RunFolder.open(folder).require_complete()


def measured(run: RunFolder, *extra: str) -> Measures:
    with DuckKernel(run) as kernel:
        return measured_by(kernel, run, *extra)


def measured_by(kernel: Kernel, run: RunFolder, *extra: str) -> Measures:
    facts = RunFacts.of(run.info, extra)
    tables.define(kernel, facts)
    return measure(kernel, facts)


def judged(run: RunFolder) -> dict[str, Verdict]:
    """What the checkers say, by guarantee."""
    facts = RunFacts.of(run.info)
    with DuckKernel(run) as kernel:
        tables.define(kernel, facts)
        return {verdict.guarantee: verdict for verdict in judge(kernel, facts)}


def histogram(measures: Measures, name: str) -> dict[float, int]:
    return {value: count for each, value, count in measures.histograms if each == name}


def series(measures: Measures, name: str) -> dict[float, float]:
    return {time_s: value for each, time_s, value in measures.series if each == name}
