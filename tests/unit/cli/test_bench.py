"""`epicast bench` measures what it says, and judges its targets by what was measured."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from epicast.cli.benchmarks.job import Job, Result
from epicast.cli.benchmarks.plan import Plan, make_plan
from epicast.cli.benchmarks.runner import middle, run_job
from epicast.cli.benchmarks.verdict import TARGETS, ratios, traced_vs_untraced, verdicts
from epicast.cli.benchmarks.worker import perform
from epicast.core.errors import EpicastError
from tests.unit.cli.shell import Shell

TINY = ("bench", "engine", "--nodes", 60, "--messages", 2, "--rounds", 1, "--quick")
BOTH = Plan(("pure", "compiled"), sizes=(10_000,))


def engines() -> tuple[str, ...]:
    return make_plan([60], 2, 1, quick=True).engines


def test_the_report_has_every_measurement_ratio_and_target(shell: Shell) -> None:
    answer = shell(*TINY, "--json")
    assert answer.code == 0
    found = answer.json
    assert set(found["ratios"]) >= {"pure_vs_simpy", "compiled_vs_simpy", "brisa_vs_flood", "traced_vs_untraced"}
    assert set(found["targets"]) == set(TARGETS) == set(found["ratios"])
    measured = {(each["measure"], each["system"], each["traced"]) for each in found["measurements"]}
    for engine in engines():
        assert {("flood", engine, False), ("flood", engine, True), ("timers", engine, False)} <= measured
        assert ("memory", engine, False) in measured
    assert {("flood", "simpy", False), ("timers", "simpy", False)} <= measured
    assert {("stream", engines()[-1], False), ("stream", engines()[-1], True)} <= measured
    assert {"python", "processor", "cores", "simpy"} <= set(found["machine"])
    assert len(answer.err.splitlines()) == len(found["measurements"])


def test_all_systems_do_the_same_work() -> None:
    events = {system: perform(Job("flood", system, 60, 3)).events for system in ("pure", "simpy")}
    assert abs(events["pure"] - events["simpy"]) <= 60  # who was the first to bring it differs
    assert events["pure"] > 3 * 60 * 8
    events = {system: perform(Job("timers", system, 60, 10)).events for system in ("pure", "simpy")}
    assert events["pure"] == pytest.approx(3 * 60 * 10, rel=0.1)
    assert events["simpy"] == pytest.approx(events["pure"], rel=0.05)


def test_a_traced_measurement_writes_every_message() -> None:
    untraced, traced = (perform(Job("flood", "pure", 60, 2, traced=traced)) for traced in (False, True))
    assert untraced.rows is None
    assert traced.events == untraced.events
    assert traced.rows is not None
    assert traced.rows >= 2 * traced.events


def test_an_idle_node_takes_some_memory() -> None:
    found = run_job(Job("memory", "pure", 20_000))
    assert found.bytes_per_node is not None
    assert 100 < found.bytes_per_node < 10_000


def test_a_measurement_that_fails_says_why() -> None:
    with pytest.raises(EpicastError, match=r"nope, 60 nodes, pure failed: .*unknown stack 'nope'"):
        run_job(Job("stream", "pure", 60, 1, stack="nope"))


def test_the_middle_one_is_taken() -> None:
    results = [Result(1, 9.0, seconds) for seconds in (3.0, 1.0, 2.0)]
    assert middle(results).cpu_seconds == 2.0
    assert middle(results[:2]).cpu_seconds == 1.0


def results(**changes: float) -> dict[Job, Result]:
    """A measurement of 1,000 events each, of one second but for the changes."""
    jobs = {
        "simpy": BOTH.flood("simpy", 10_000),
        "pure": BOTH.flood("pure", 10_000),
        "compiled": BOTH.flood("compiled", 10_000),
        "compiled_traced": BOTH.flood("compiled", 10_000, traced=True),
        "brisa": BOTH.stream("compiled"),
        "brisa_traced": BOTH.stream("compiled", traced=True),
        "scamp": BOTH.overlay("scamp-flood"),
        "clon": BOTH.overlay("clon-flood"),
    }
    found = {job: Result(1000, changes.get(name, 1.0), changes.get(name, 1.0)) for name, job in jobs.items()}
    return {**found, BOTH.memory("compiled"): Result(bytes_per_node=600.0)}


def test_ratios_compare_measurements_of_one_run() -> None:
    found = results(simpy=8.0, pure=2.0, compiled=0.5, compiled_traced=0.8, brisa=1.0, brisa_traced=2.2, clon=3.0)
    assert ratios(BOTH, found) == {
        "pure_vs_simpy": 4.0,
        "compiled_vs_simpy": 16.0,
        "brisa_vs_flood": 0.5,
        "traced_vs_untraced": 2.2,
        "scamp_build": 1000.0,
        "clon_build": 3000.0,
        "bytes_per_idle_node": 600.0,
    }
    assert traced_vs_untraced(BOTH, found) == {
        "flood": {"compiled": {"processor": 1.6, "wall": 1.6}},
        "brisa": {"compiled": {"processor": 2.2, "wall": 2.2}},
    }


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    judged = verdicts(ratios(Plan(("pure",), sizes=(10_000,)), {}))
    assert {each["met"] for each in judged.values()} == {None}


@pytest.mark.parametrize(("name", "measured", "met"), [("brisa_vs_flood", 0.2, False), ("brisa_vs_flood", 0.25, True)])
def test_a_target_is_a_bound(name: str, measured: float, met: bool) -> None:
    assert verdicts({**dict.fromkeys(TARGETS), name: measured})[name]["met"] is met


@pytest.mark.parametrize(("value", "words", "code"), [(9.0, [], 0), (9.0, ["--check"], 1), (0.1, ["--check"], 0)])
def test_only_a_check_fails_for_a_missed_target(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, value: float, words: list[str], code: int
) -> None:
    monkeypatch.setattr("epicast.cli.benchmarks.runner.run_job", lambda job: Result(1000, 1.0, 1.0, bytes_per_node=1.0))
    measured = {**dict.fromkeys(TARGETS), "traced_vs_untraced": value}
    monkeypatch.setattr("epicast.cli.benchmarks.report.ratios", lambda *_: measured)
    answer = shell(*TINY, *words)
    assert answer.code == code
    assert ("missed" in answer.out) is (value > 2)


def test_the_plan_scales_the_work_to_the_system() -> None:
    plan = Plan(("pure", "compiled"))
    assert (
        plan.flood("compiled", 10_000).amount > plan.flood("pure", 10_000).amount > plan.flood("simpy", 10_000).amount
    )
    assert plan.flood("simpy", 100_000).amount == 1
    assert plan.headline_nodes == 10_000
    assert Plan(("pure",), sizes=(50, 200)).headline_nodes == 200


def test_without_simpy_it_says_how_to_get_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_spec(name: str, *rest: Any) -> Any:
        return None if name == "simpy" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    assert 'pip install "epicast[bench]"' in shell.refusal("bench", "engine")


def test_a_profile_names_modules_and_handlers(shell: Shell) -> None:
    words = ("bench", "profile", "--nodes", 20, "--messages", 3, "--top", 30)
    found = shell(*words, "--json").json
    assert found["events"] > 0
    assert "sim/engine" in {part["name"] for part in found["modules"]}
    assert "dissemination/brisa: on_data" in {part["name"] for part in found["handlers"]}
    assert sum(part["share"] for part in found["modules"]) == pytest.approx(1.0, abs=0.1)
    assert "sim/engine: transmit" in shell(*words).out
