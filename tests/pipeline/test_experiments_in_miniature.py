"""Every experiment with a handful of processes: what it asks for is measured, and it has something to show."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicast.experiments import catalog
from epicast.experiments.claims import NO_DAG
from epicast.experiments.evaluation import Material
from epicast.pipeline.confidence import stat
from epicast.pipeline.layout import Layout
from epicast.pipeline.results import Distribution, Results
from epicast.pipeline.small_runs import Plan, analyse_small
from epicast.pipeline.sweep.experiment import Experiment
from epicast.pipeline.sweep.play import play

TINY = {"nodes": 40, "warmup": "10s", "drain": "5s"}
CHURN = "const churn 20% each 1s"
NEAR_AND_FAR = ("clon-overlay", "clon-traffic", "clon-ttl", "clon-healing")
TOTAL_ORDER = ("ep-2-3", "ep-4", "ep-5", "ep-6", "ep-c", "ep-loss", "ep-size", "ep-views", "epto-bytes")


def miniature(name: str) -> Experiment:
    """The same points, but small ones and few messages."""
    if name in TOTAL_ORDER:
        return ordered_miniature(name)
    table: dict[str, Any] = tomllib.loads(catalog.load(name).to_toml())
    joins = {**table["scenario"].get("joins", {}), "interval": "10ms"}
    table |= {"seeds": 1, "scenario": {**table["scenario"], **TINY, "joins": joins}}
    table["scenario"]["workload"] = {**table["scenario"]["workload"], "messages": 30}
    if name in NEAR_AND_FAR:
        table["scenario"]["latency"] = table["scenario"]["latency"].replace("areas 8", "areas 4")
        table["scenario"]["workload"] |= {"messages": 8, "sources": 8}
        table["scenario"]["snapshot_interval"] = "2s"
        for case in table["axes"].get("overlay", {"cases": {}})["cases"].values():
            case.pop("warmup", None)
    if name == "clon-healing":
        table["scenario"]["churn"] = "from 0s to 8s const churn 10% each 2s"
    if name == "br-8":
        for number, case in enumerate(table["axes"]["nodes"]["cases"].values()):
            case |= {"nodes": 24 + 16 * number, "warmup": "10s"}
        for case in table["axes"]["churn"]["cases"].values():
            case["churn"] = CHURN
    if name == "demo":
        table["scenario"]["churn"] = CHURN
    if name == "mass-failure":
        for case in table["axes"]["killed"]["cases"].values():
            case["fault"][0]["at"] = "2s"
    return Experiment.load(table)


def ordered_miniature(name: str) -> Experiment:
    """Points of the quick variant: there are many, and each must be over in a moment."""
    table: dict[str, Any] = tomllib.loads(catalog.load(name).smaller().to_toml())
    scenario: dict[str, Any] = {**table["scenario"], "nodes": 12, "warmup": "2s", "drain": "4s"}
    workload = {**scenario["workload"], "messages": 10, "sources": 6}
    scenario |= {"workload": workload, "joins": {"interval": "10ms", "degree": 11}}
    if name == "ep-size":  # the size has to be known
        scenario["warmup"] = "8s"
    if name == "ep-2-3":  # sizes that differ, and enough to be out of order
        cases = table["axes"]["system"]["cases"]
        table["axes"]["system"]["cases"] = {label: case for label, case in cases.items() if "0.01" not in label}
        for case in cases.values():
            nodes = case["nodes"] // 10
            case |= {"nodes": nodes, "joins.degree": nodes - 1}
            case["workload"] |= {"sources": nodes, "messages": 10}
    if name == "ep-loss":
        table["axes"]["loss"]["values"] = [0.0, 0.6]
    if "nodes" in table["axes"]:
        table["axes"]["nodes"]["values"] = [8 + 4 * at for at in range(len(table["axes"]["nodes"]["values"]))]
    return Experiment.load({**table, "seeds": 1, "scenario": scenario})


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """One for all: experiments that need the same runs share them."""
    return Layout(Path(tmp_path_factory.mktemp("miniature"))).make()


def answers(experiment: Experiment, layout: Layout) -> Iterator[tuple[int, dict[str, Any]]]:
    """The point and the analysis of each run."""
    for number in range(len(experiment)):
        run = experiment.run(number)
        outcome = play(run, layout, ["test"])
        assert outcome.reason == ""
        found = analyse_small(run.name, Plan(layout, keep_tables=False, extra=experiment.extra)).to_pylist()[0]
        assert found["error"] is None
        yield run.point.number, found


def gathered(experiment: Experiment, layout: Layout) -> Results:
    stats, distributions = {}, {}
    series: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    counts: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for point, found in answers(experiment, layout):
        stats |= {(point, name): stat([value]) for name, value in found["metrics"]}
        for each in found["histograms"]:
            counts[point, each["name"]].append((each["value"], each["count"]))
        for each in found["series"]:
            series[point, each["name"]].append((each["time_s"], each["value"]))
    distributions = {key: Distribution(*np.array(pairs, np.float64).T) for key, pairs in counts.items()}
    lines = {key: (np.array([t for t, _ in pairs]), np.array([v for _, v in pairs])) for key, pairs in series.items()}
    return Results([point.labels for point in experiment.points()], stats, distributions, lines, [], [])


@pytest.mark.parametrize("name", catalog.names())
def test_an_experiment_measures_all_that_its_claims_and_figures_are_about(name: str, layout: Layout) -> None:
    results = gathered(miniature(name), layout)
    found = catalog.evaluate_of(name)(Material(results, lambda point: [(1, 0), (2, 0), (3, 1), (4, 3)]))
    assert found.checks
    assert [row for row in found.checks if row.verdict == "not measured" and row.reason != NO_DAG] == []
    assert found.figures
    assert [figure.id for figure in found.figures if "nothing was measured" in figure.svg] == []
    assert found.tables
    for table in found.tables:
        empty = [cell for row in table.rows for cell in row if cell == "\N{EN DASH}"]
        assert len(empty) < len(table.rows) * len(table.header) / 3, table.title


@pytest.mark.parametrize("name", ["br-2", "demo"])
def test_the_general_evaluation_shows_any_of_them(name: str, layout: Layout) -> None:
    results = gathered(miniature(name), layout)
    found = catalog.evaluate_of("own.toml")(Material(results, lambda point: ()))
    assert {"latency", "depth", "deliveries"} <= {figure.id for figure in found.figures}
    assert len(found.tables[0].rows) == len(results.points)
    assert re.match(r"[\d.]+", found.tables[0].rows[0][1])
