"""An experiment expands to runs; a run's name stands for all that decides what it does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.pipeline import code_version
from epicast.pipeline.sweep import experiment as module
from epicast.pipeline.sweep.experiment import Experiment

BASE: dict[str, Any] = {
    "title": "An experiment",
    "seeds": 3,
    "scenario": {"stack": "flood", "nodes": 20, "overrides": {"membership": {"passive_size": 9}}},
    "axes": {
        "view": {"key": "overrides.membership.active_size", "values": [3, 4]},
        "size": {"cases": {"small": {"nodes": 10}, "large": {"nodes": 30, "workload.messages": 7}}},
    },
    "quick": {"seeds": 1, "minutes": 0.5, "scenario": {"workload": {"messages": 2}}},
}


def load(**changes: Any) -> Experiment:
    return Experiment.load({**BASE, **changes})


def test_every_combination_of_values_is_a_point() -> None:
    points = load().points()
    assert [point.labels for point in points] == [
        {"view": "3", "size": "small"},
        {"view": "3", "size": "large"},
        {"view": "4", "size": "small"},
        {"view": "4", "size": "large"},
    ]
    assert points[3].scenario.nodes == 30
    assert points[3].scenario.workload.messages == 7
    assert points[3].scenario.overrides == {"membership": {"passive_size": 9, "active_size": 4}}


def test_every_point_runs_with_every_seed_and_all_points_share_the_seeds() -> None:
    experiment = load()
    runs = [experiment.run(number) for number in range(len(experiment))]
    assert len(experiment) == 12
    assert [run.seed for run in runs] == [1] * 4 + [2] * 4 + [3] * 4
    assert {(run.point.number, run.seed) for run in runs} == {(p, s) for p in range(4) for s in (1, 2, 3)}
    assert len({run.name for run in runs}) == 12


def test_an_experiment_without_axes_has_one_point() -> None:
    experiment = load(axes={})
    assert len(experiment) == 3
    assert [str(point) for point in experiment.points()] == ["the only point"]


def test_what_is_written_is_read_back() -> None:
    plain = {"cases": {"as it is": {}, "faster": {"latency": "constant 1ms"}}}
    for experiment in (load(), load(axes={}), load(axes={"latency": plain})):
        assert Experiment.from_toml(experiment.to_toml()) == experiment


def test_the_quick_variant_replaces_what_it_names() -> None:
    quick = load().smaller()
    assert (quick.seeds, quick.minutes, len(quick)) == (1, 0.5, 4)
    assert quick.points()[0].scenario.workload.messages == 2
    assert quick.points()[0].scenario.nodes == 10


def test_seeds_given_by_the_user_win() -> None:
    assert load().with_seeds(8).seeds == 8
    assert load().with_seeds(None).seeds == 3
    with pytest.raises(ConfigError, match="seeds"):
        load().with_seeds(0)


def test_another_network_is_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rtt.csv").write_text("0,20\n20,0\n")
    monkeypatch.chdir(tmp_path)
    for point in load().with_latency("matrix rtt.csv assignment=shuffled").points():
        assert point.scenario.latency == {
            "model": "matrix",
            "file": str(tmp_path / "rtt.csv"),
            "assignment": "shuffled",
            "jitter": 0.0,
            "local_us": 100,
        }
    assert load().with_latency(None) == load()
    with pytest.raises(ConfigError, match="latency"):
        load().with_latency("matrix")
    plain = {"cases": {"as it is": {}, "faster": {"latency": "constant 1ms"}}}
    with pytest.raises(ConfigError, match="networks of its own, by speed"):
        load(axes={"speed": plain}).with_latency("constant 2ms")


def test_the_name_of_a_run_depends_on_scenario_seed_level_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    name = load().run(0).name
    other_scenario = load(scenario={**BASE["scenario"], "warmup": "3s"})
    assert len({name, load().run(4).name, other_scenario.run(0).name, load(trace="deliveries").run(0).name}) == 4
    assert load(title="Another title").run(0).name == name
    monkeypatch.setattr(module, "code_version", lambda: "another")
    assert load().run(0).name != name


def test_the_name_of_a_run_is_the_same_in_another_process() -> None:
    code = f"from epicast.pipeline.sweep.experiment import Experiment as E; print(E.load({BASE!r}).run(5).name)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == load().run(5).name


def test_the_version_of_the_code_follows_its_sources(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "one.py").write_text("a = 1\n")
    monkeypatch.setattr(code_version, "files", lambda package: tmp_path)
    before = code_version.code_version.__wrapped__(("core",))
    assert code_version.code_version.__wrapped__(("core",)) == before
    (tmp_path / "core" / "one.py").write_text("a = 2\n")
    assert code_version.code_version.__wrapped__(("core",)) != before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": 0}, "seeds: expected an integer from 1 to 100000"),
        ({"axes": {"view": {"key": "nodes"}}}, "axes.view: give key and values, or cases"),
        ({"axes": {"view": {"key": "nodes", "values": []}}}, "give key and values"),
        ({"axis": {}}, "axis: unknown key; did you mean axes?"),
        ({"trace": "all"}, "trace: expected one of deliveries, full"),
        (
            {"seeds": 100_000, "axes": {"n": {"key": "nodes", "values": list(range(1, 20))}}},
            "1,900,000 runs are too many",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=r"^[^\n]*$") as refused:
        load(**changes)
    assert said in str(refused.value)


def test_a_point_whose_scenario_is_wrong_is_named() -> None:
    wrong = load(axes={"view": {"key": "overrides.membership.active_size", "values": [3, -1]}})
    with pytest.raises(ConfigError, match=r"scenario of view -1: stack\.membership\.active_size"):
        wrong.points()
