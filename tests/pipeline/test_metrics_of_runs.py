"""Metrics of simulated runs: they say what the simulator itself says, and never what nobody listed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from epicast.core.records import Kind, Level
from epicast.pipeline.metrics import HISTOGRAMS, METRICS, SERIES, Measures
from epicast.pipeline.metrics.bins import VALUES_MAX
from epicast.pipeline.metrics.measures import SERIES_POINTS_MAX
from epicast.trace.run import RunFolder
from tests.pipeline.histories import History
from tests.pipeline.measured import histogram, measured, series, simulated

CHURN = {"churn": "const churn 10% each 1s", "warmup": "5s", "snapshot_interval": "700ms"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "a tree under churn": {"stack": "brisa", "nodes": 48, **CHURN},
    "trees of two sources": {"stack": "brisa", "workload": {"messages": 12, "sources": 2}},
    "flooding with loss": {"stack": "flood", "nodes": 24, "network": {"transport": "datagram", "loss": 0.02}},
    "a given overlay": {"stack": "static-flood", "nodes": 40, "joins": {"degree": 5, "graph": "symmetric"}},
    "a network that copies": {"stack": "flood", "network": {"transport": "datagram", "duplication": 0.1}},
    "deliveries alone": {"level": Level.DELIVERIES, "nodes": 40, **CHURN},
    "one process": {"stack": "brisa", "nodes": 1},
    "no messages": {"stack": "brisa", "nodes": 12, "workload": {"messages": 0}},
    "one message": {"stack": "flood", "nodes": 2, "workload": {"messages": 1}},
}


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda name: name.replace(" ", "-"))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Measures]:
    run = simulated(tmp_path_factory.mktemp("run"), **SCENARIOS[request.param])
    return run, measured(run)


def test_metrics_agree_with_the_counters_of_the_run(case: tuple[RunFolder, Measures]) -> None:
    run, found = case
    assert {name: found.metrics.get(name) for name in expected(run)} == pytest.approx(expected(run), abs=6e-7)


def expected(run: RunFolder) -> dict[str, float]:
    """What the simulator counted while the run went on, under the names of the metrics. It rounds to six places."""
    said = run.info.counters
    names = ["messages", "deliveries", "owed", "missing", "delivery_ratio", "repeated", "gaps"]
    full = run.info.trace_level == Level.FULL
    values = {name: said[name] for name in names}
    values |= {f"latency_ms_{each}": value for each, value in said["latency_ms"].items()}
    values |= {f"hops_{each}": value for each, value in said["hops"].items()}
    values |= {"processes": said["nodes"]["started"], "crashes": said["nodes"]["crashed"]}
    if said["tree"] and said["tree"]["depth_mean"] is not None:
        shape = {"depth_max": "depth_max", "depth_mean": "depth_mean", "degree_max": "out_degree_max"}
        if "sources" not in run.info.scenario["workload"] or run.info.scenario["workload"]["sources"] == 1:
            shape |= {"leaf_share": "leaf_share", "orphans": "orphans"}
            values |= {f"tree_{metric}": said["tree"][name] for name, metric in shape.items()}
        values |= {f"{sort}_repairs": said["repairs"][sort] for sort in ("soft", "hard")}
        values["parents_lost"] = said["repairs"]["parents_lost"]
    if full:
        values |= {name: said[name] for name in ("copies_per_delivery", "duplicates_per_delivery")}
        for what in ("messages", "bytes"):
            values |= {f"sent_{what}_{layer}": n for layer, n in said[f"{what}_by_layer"].items() if n}
        values["dropped_messages"] = sum(said["drops"].values())
    return {name: value for name, value in values.items() if value is not None}


def test_what_is_sent_is_received_or_dropped_or_under_way(case: tuple[RunFolder, Measures]) -> None:
    run, found = case
    if run.info.trace_level == Level.FULL:
        m = found.metrics
        ended = m["received_messages"] + m["dropped_messages"] + run.info.counters["in_flight"]
        assert m["sent_messages"] + m["copied_messages"] == ended


def test_every_name_is_listed_and_every_list_is_bounded(case: tuple[RunFolder, Measures]) -> None:
    _, found = case
    assert found.metrics.keys() <= METRICS.keys()
    counts = Counter(name for name, *_ in found.histograms)
    points = Counter(name for name, *_ in found.series)
    assert counts.keys() <= HISTOGRAMS.keys()
    assert points.keys() <= SERIES.keys()
    assert max(counts.values(), default=0) <= VALUES_MAX
    assert max(points.values(), default=0) <= SERIES_POINTS_MAX
    assert len({(name, value) for name, value, _ in found.histograms}) == len(found.histograms)
    assert len({(name, at) for name, at, _ in found.series}) == len(found.series)
    assert all(type(value) is float for value in found.metrics.values())


def test_histograms_and_series_sum_up_to_the_metrics(case: tuple[RunFolder, Measures]) -> None:
    _, found = case
    rates = series(found, "deliveries_per_second")
    step_s = sorted(rates)[1] if len(rates) > 1 else 0.1
    others = found.metrics["deliveries"] - found.metrics["messages"]
    assert sum(rates.values()) * step_s == pytest.approx(others)
    assert sum(series(found, "missing").values()) == found.metrics["missing"]
    if "duplicates_mean" in found.metrics:
        assert sum(histogram(found, "duplicates").values()) == found.metrics["owed"]
    up = found.metrics["processes"] - found.metrics["crashes"] - found.metrics["leaves"]
    if "overlay_processes" in found.metrics:
        assert found.metrics["overlay_processes"] == up


def test_flooding_a_given_overlay_costs_exactly_what_the_documents_say(tmp_path: Path) -> None:
    """BR-1: 2E - 2(N - 1) duplicates a message. The run ends with the last delivery, while some are still under way."""
    run = simulated(tmp_path, **SCENARIOS["a given overlay"])
    found = measured(run).metrics
    edges, size = found["overlay_edges"], found["overlay_processes"]
    assert (edges, size) == (100, 40)
    assert found["sent_payload_messages"] == found["messages"] * (2 * edges - (size - 1))
    came = found["messages"] * (2 * edges - 2 * (size - 1)) - run.info.counters["in_flight"]
    assert found["duplicates_per_message"] == pytest.approx(came / found["messages"])
    assert found["duplicates_mean"] == pytest.approx(came / found["messages"] / size)
    assert found["duplicates_per_process_mean"] == pytest.approx(found["duplicates_mean"], abs=0.005)


def test_a_tree_that_stands_costs_one_copy_and_loads_inner_processes(tmp_path: Path) -> None:
    """BR-6 and BR-7."""
    run = simulated(tmp_path, nodes=64, workload={"messages": 60})
    found = measured(run).metrics
    assert found["copies_per_delivery"] > found["copies_after_first"] + 0.02  # the first message is flooded
    assert 1.0 <= found["copies_after_first"] < 1.02
    assert 1.0 <= found["copies_second_half"] < 1.02
    assert found["upload_children_correlation"] > 0.95
    assert found["arrived_payload_bytes_share"] == 1.0
    assert found["download_payload_bytes_gini"] < 0.05
    assert found["upload_payload_bytes_gini"] > 0.3
    assert 1.0 <= found["tree_stretch_mean"] < 3.0


def test_a_run_without_messages_tells_of_its_overlay_and_traffic(tmp_path: Path) -> None:
    found = measured(simulated(tmp_path, **SCENARIOS["no messages"]))
    assert found.metrics["messages"] == found.metrics["owed"] == 0
    assert found.metrics["window_s"] == found.metrics["run_s"] > 0
    assert found.metrics["upload_bytes_per_second"] > 0
    assert found.metrics["overlay_largest_weak_share"] == 1.0
    assert not {"delivery_ratio", "latency_ms_mean", "copies_per_delivery"} & found.metrics.keys()
    assert min(series(found, "processes_up")) == 0.0


def test_a_run_in_which_nothing_happened_has_no_metrics(tmp_path: Path) -> None:
    assert measured(History(0).save(tmp_path)) == Measures()


def test_a_message_that_nobody_is_left_to_receive_is_no_failure(tmp_path: Path) -> None:
    h = History(2)
    h.publish(0, own=False)
    h.crash(0)
    h.add(Kind.LEAVE, 1)
    h.ended[1] = (h.now_us, "leave")
    found = measured(h.save(tmp_path)).metrics
    assert (found["messages"], found["owed"], found["deliveries"], found["processes_staying"]) == (1, 0, 0, 0)
    assert (found["crashes"], found["leaves"]) == (1, 1)
    assert "delivery_ratio" not in found
