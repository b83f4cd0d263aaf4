"""Scenarios from files and back, and one line for whatever is wrong in them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from epicast.core.errors import ConfigError
from epicast.sim.fault_schedule import FaultConfig
from epicast.sim.latency import UniformLatency
from epicast.sim.network import NetworkConfig
from epicast.sim.scenario import JoinsConfig, Scenario
from epicast.sim.workload import WorkloadConfig

FILE = """
stack = "static-flood"
nodes = 64
latency = "uniform 5ms 20ms"
warmup = "2s"
churn = '''
const churn 3% each 10s
at 20s stop'''

[network]
loss = 0.01
detection = "500ms"

[joins]
interval = "5ms"
graph = "symmetric"
degree = 5

[workload]
messages = 10
sources = 2

[[fault]]
kind = "partition"
at = "1s"
until = "3s"
fraction = 0.25

[[fault]]
kind = "loss"
at = "500ms"
probability = 0.1
"""


def test_a_file_says_what_python_can_say(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FILE)
    assert Scenario.read(file) == Scenario(
        stack="static-flood",
        nodes=64,
        latency="uniform 5ms 20ms",
        warmup_us=2_000_000,
        churn="const churn 3% each 10s\nat 20s stop",
        network=NetworkConfig(loss=0.01, detection_us=500_000),
        joins=JoinsConfig(interval_us=5_000, graph="symmetric", degree=5),
        workload=WorkloadConfig(messages=10, sources=2),
        fault=(
            FaultConfig(kind="partition", at_us=1_000_000, until_us=3_000_000, fraction=0.25),
            FaultConfig(kind="loss", at_us=500_000, probability=0.1),
        ),
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stack": "flood", "overrides": {"membership": {"active_size": 6}}},
        {"stack": {"membership": {"protocol": "static"}, "dissemination": {"protocol": "flood"}}},
        {"latency": {"model": "uniform", "low": "1ms", "high": "9ms"}},
        {"latency": {"model": "quantiles", "table": [[0, "1ms"], [0.5, "40ms"], [1, "200ms"]]}},
        {"churn": "at 1s crash 10%  # a comment with ''' and \\ and \"\nat 2s join 5"},
        {"workload": {"payload_sizes": [1, 10, 100], "source_ids": [3, 1]}},
        {
            "fault": [
                {"kind": "crash", "at": "1s", "nodes": [1, 2]},
                {"kind": "clog", "at": 7, "delay": "1s", "count": 2},
            ]
        },
        tomllib.loads(FILE),
    ],
)
def test_a_scenario_survives_the_way_to_toml_and_back(settings: dict[str, Any]) -> None:
    scenario = Scenario.load(settings)
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    assert Scenario.load(scenario.as_dict()) == scenario


def test_all_settings_are_written_down_so_that_new_defaults_change_no_old_run() -> None:
    written = tomllib.loads(Scenario().to_toml())
    assert written["workload"]["messages"] == WorkloadConfig().messages
    assert written["network"]["detection_us"] == NetworkConfig().detection_us
    assert written["drain_us"] == 20_000_000


def test_a_table_and_a_text_make_the_same_latency() -> None:
    table = {"model": "uniform", "low": "1ms", "high": "9ms"}
    assert Scenario(latency="uniform 1ms 9ms").build_latency() == UniformLatency(low_us=1_000, high_us=9_000)
    assert Scenario.load({"latency": table}).build_latency() == UniformLatency(low_us=1_000, high_us=9_000)


def test_overrides_reach_the_stack() -> None:
    scenario = Scenario(stack="flood", overrides={"dissemination": {"ahead_max": 5}})
    assert scenario.build_stack().dissemination.config.ahead_max == 5  # type: ignore[attr-defined]


def test_the_first_processes_publish_unless_others_are_named() -> None:
    assert Scenario(workload=WorkloadConfig(sources=3)).source_ids == (0, 1, 2)
    assert Scenario(workload=WorkloadConfig(source_ids=(9, 4))).source_ids == (9, 4)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"nods": 3}, "nods: unknown key; did you mean nodes?"),
        ({"nodes": 0}, "nodes: expected an integer from 1 to 10000000, got 0"),
        ({"warmup": "soon"}, "warmup_us: expected a duration"),
        ({"warmup": 1, "warmup_us": 1}, "warmup_us: given twice, with and without _us; keep one"),
        ({"network": {"loss": 2}}, "network.loss: expected a number from 0.0 to 1.0, got 2"),
        ({"network": {"detect": 2}}, "network.detect: unknown key; did you mean detection_us?"),
        ({"workload": 3}, "workload: expected WorkloadConfig, got 3"),
        ({"joins": {"interval": 0}}, "joins.interval_us: expected a duration"),
        ({"latency": "slow"}, "latency: expected a model, got 'slow'"),
        ({"latency": {"model": "uniform", "low": "1ms"}}, "latency.high_us is missing"),
        ({"churn": "some"}, "churn line 1: cannot read 'some'"),
        ({"stack": "none"}, "unknown stack 'none'; known stacks:"),
        ({"stack": {"membership": {}}}, "stack.membership.protocol: expected one of"),
        ({"overrides": {"orderings": {}}}, "stack.orderings: unknown key"),
        ({"overrides": {"dissemination": {"ahead": 1}}}, "stack.dissemination.ahead: unknown key"),
        ({"nodes": 4, "workload": {"sources": 5}}, "workload.sources: expected at most nodes = 4"),
        (
            {"nodes": 4, "workload": {"source_ids": [1, 4]}},
            "workload.source_ids: expected numbers below nodes = 4, got 4",
        ),
        ({"fault": [{"kind": "bang", "at": 1}]}, "fault[0].kind: expected one of partition,"),
        ({"fault": [{"kind": "crash"}]}, "fault[0].at_us is missing"),
        ({"fault": [{"kind": "crash", "at": 1}]}, "fault[0]: expected one of fraction, count and nodes, got none"),
        ({"fault": [{"kind": "crash", "at": 1, "count": 1, "fraction": 0.1}]}, "got fraction and count"),
        ({"fault": [{"kind": "crash", "at": 1, "until": 2, "count": 1}]}, "a crash happens once and has no end"),
        ({"fault": [{"kind": "pause", "at": 2, "until": 2, "count": 1}]}, "until: expected a time after at = 2 us"),
        ({"fault": [{"kind": "clog", "at": 1, "count": 1}]}, "delay: give one to a clog"),
        ({"fault": [{"kind": "loss", "at": 1}]}, "probability: give one above 0 to a loss"),
        ({"fault": [{"kind": "loss", "at": 1, "probability": 0.5, "count": 2}]}, "loss strikes the whole network"),
        ({"fault": {"kind": "crash"}}, "fault: expected a list"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(settings: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        Scenario.load({"stack": "static-flood", **settings})
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml: No such file or directory; give a scenario file"):
        Scenario.read(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"nodes = ", "not TOML: Invalid value (at end of document)"),
        (b"nodes = 1\nnodes = 2", "not TOML: Cannot overwrite a value"),
        (b"x = " + b"[" * 100_000, "not TOML: nested too deep"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"nods = 3", "nods: unknown key; did you mean nodes?"),
        (b"[workload]\nmessages = -1", "workload.messages: expected an integer from 0"),
    ],
)
def test_a_bad_file_is_named_with_the_key(tmp_path: Path, content: bytes, error: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        Scenario.read(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)
