"""`epicast cluster`: real processes on this machine, which all end with it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epicast.cli.cluster_view import outcome_view
from epicast.cli.settings import node_settings
from epicast.core.errors import EpicastError
from epicast.live.cluster import Outcome, Plan
from epicast.live.pages import fetch_status
from epicast.live.settings import Settings, make_node
from epicast.pipeline.check import check_here, find_runs
from epicast.trace.merge import find_journals, merge
from tests.live.programs import Program
from tests.unit.cli.shell import Shell

N = 4
DEADLINE_S = 120.0


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def answers(admin: str) -> bool:
    try:
        return bool(fetch_status(admin))
    except EpicastError:
        return False


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_workload_reaches_every_node_and_all_leave(tmp_path: Path) -> None:
    words = ("cluster", N, "--json", "--messages", 40, "--rate", 200, "--payload", 300, "--seconds", 0)
    with Program(*words, "--trace", tmp_path / "trace") as cluster:
        ready, played, summary = cluster.json(), cluster.json(), cluster.json()
        assert (cluster.wait(), cluster.rest(), cluster.errors()) == (0, [], [])
    assert [each["number"] for each in ready["nodes"]] == [1, 2, 3, 4]
    assert len({each["address"] for each in ready["nodes"]} | {each["admin"] for each in ready["nodes"]}) == 2 * N
    assert (played["messages"], played["delivered"], played["missing"]) == (40, 40 * N, [])
    assert played["copies_per_delivery"] >= 1
    assert 0 < played["latency_ms"]["p50"] <= played["latency_ms"]["p99"] <= played["latency_ms"]["max"]
    assert (summary["event"], summary["running"], summary["killed"], summary["added"]) == ("summary", N, 0, 0)
    assert (summary["published"], summary["delivered"], summary["lost_by_subscribers"]) == (40, 40 * N, 0)
    assert summary["latency_ms"] == played["latency_ms"]
    assert not any(runs(each["pid"]) for each in ready["nodes"])
    assert sorted(path.name for path in (tmp_path / "trace").iterdir()) == ["1", "2", "3", "4"]
    assert len(find_journals(tmp_path / "trace")) == N


def test_ctrl_c_ends_all_nodes_in_good_order() -> None:
    with Program("cluster", N, "--tls") as cluster:
        lines = [cluster.line() for _ in range(N + 6)]
        assert lines[0].split() == ["node", "address", "admin"]
        assert "4 nodes joined" in lines[N + 2]
        admins = [line.split()[2] for line in lines[1 : N + 1]]
        statuses = [fetch_status(admin) for admin in admins]
        assert all(status["joined"] and status["secure"] for status in statuses)
        with Program("pub", "a/b", "hello", "--seed", lines[1].split()[1], *lines[-2].split()[-4:]) as one:
            assert (one.wait(), one.errors()) == (0, [])
        assert cluster.stop(signal.SIGINT) == 0
        assert cluster.errors() == []
        summary = {line.split()[0]: line for line in cluster.rest() if line.strip()}
        assert list(summary) == ["Ran", "Processes", "Messages", "Latency"]
        assert "4 at the end" in summary["Processes"]
        assert "0 published · 4 delivered" in summary["Messages"]
        assert "p50" in summary["Latency"]
        assert [line.split()[:2] for line in lines[-3:]] == [["epicast", "sub"], ["epicast", "pub"], ["epicast", "top"]]


def test_the_cluster_outlives_a_node_and_tells_of_it() -> None:
    with Program("cluster", 3, "--json") as cluster:
        nodes = cluster.json()["nodes"]
        os.kill(nodes[2]["pid"], signal.SIGKILL)
        assert cluster.until(f"node 3 ({nodes[2]['address']}) ended: killed by SIGKILL")
        assert fetch_status(nodes[0]["admin"])["id"] == nodes[0]["id"]
        assert cluster.stop(signal.SIGTERM) == 0


def test_nodes_end_even_if_the_command_is_killed() -> None:
    with Program("cluster", 2, "--json") as cluster:
        nodes = cluster.json()["nodes"]
        cluster.stop(signal.SIGKILL)
    for each in nodes:
        while answers(each["admin"]):
            pass


def test_processes_are_killed_and_added_and_the_trace_says_so(tmp_path: Path) -> None:
    """It runs until two were killed and two added: on a busy machine a process takes long to come up."""
    words = ("cluster", 6, "--json", "--messages", 200, "--rate", 50, "--trace", tmp_path / "trace")
    told: list[dict[str, Any]] = []

    def those(event: str) -> list[dict[str, Any]]:
        return [each for each in told if each["event"] == event]

    with Program(*words, "--kill-every", 1, "--add-every", 0.6) as cluster:
        deadline = time.monotonic() + DEADLINE_S
        while len(those("killed")) < 2 or len(those("added")) < 2 or not those("played"):
            assert time.monotonic() < deadline, told
            told.append(cluster.json())
        assert cluster.stop(signal.SIGINT) == 0
        told += map(json.loads, cluster.rest())
    (played,), (summary,) = those("played"), those("summary")
    assert told[-1] == summary
    assert told.index(those("killed")[0]) < told.index(played), "the workload was over"
    assert min(each["number"] for each in those("killed")) > 3, "the first half is spared"
    assert (played["missing"], played["delivered"] % 200) == ([], 0)
    first, killed = told[0]["nodes"], {each["number"]: each["id"] for each in those("killed")}
    added = {each["number"] for each in those("added")} | {number for number in killed if number > 6}
    for event, numbers in (("killed", killed), ("added", added)):
        assert 0 <= summary[event] - len(numbers) <= 1, "one may have been under way when it was stopped"
    assert not any(runs(each["pid"]) for each in first + those("added"))
    run = merge(find_journals(tmp_path / "trace"), tmp_path / "merged", command=[]).require_complete()
    nodes = pq.read_table(run.nodes_file).to_pylist()
    crashed = {each["name"] for each in nodes if each["how"] == "crash"}
    assert crashed >= set(killed.values())
    assert len(crashed) <= len(killed) + 2, "one may have been about to be killed, and one about to start"
    assert {each["name"] for each in nodes} >= {each["id"] for each in first + those("added")}
    answer = check_here(find_runs(run.path))
    assert [each.guarantee for each in answer.judged if each.broken] == []
    assert {each.guarantee for each in answer.judged if each.promised} >= {"integrity", "validity", "agreement"}


def test_settings_of_the_stack_of_orders_and_of_limits_reach_every_node(tmp_path: Path) -> None:
    sets = ("membership.active_size=3", "total.balls.period=20ms", "limits.stall=3s")
    words = [word for each in sets for word in ("--set", each)]
    with Program("cluster", 2, "--order", "total", "--messages", 5, "--seconds", 0, "--json", *words) as cluster:
        _ready, played, _summary = (cluster.json() for _ in range(3))
        assert cluster.wait() == 0
    assert played["missing"] == []
    told = Settings.read(None, {"order": "total"}, node_settings(sets))
    stack = make_node(told)._stack
    assert stack.ordering is not None
    assert stack.membership.config.active_size == 3
    assert stack.ordering.config.total.balls.period_us == 20_000
    assert told.limits.stall_us == 3_000_000


def test_ports_follow_the_base_port_and_one_that_is_taken_is_told() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Program("cluster", 2, "--base-port", port) as cluster:
            assert cluster.wait() == 2
            said = cluster.errors()[-1]
    assert said.startswith(f"epicast: error: node 1 ended: cannot listen at 127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0"], "nodes: expected 1 to 200, got 0"),
        (["201"], "nodes: expected 1 to 200, got 201"),
        (["many"], "N"),
        (["2", "--base-port", "65535"], "base-port: expected 1 to 65532, got 65535"),
        (["2", "--stack", "nope"], "node 1 ended: unknown stack 'nope'"),
        (["2", "--payload", "0"], "--payload"),
        (["2", "--payload", "300000"], "--payload"),
        (["2", "--seconds", "-1"], "--seconds"),
        (["2", "--kill-every", "0"], "kill-every: expected 0.1 to 86,400 seconds, got 0"),
        (["2", "--add-every", "1e9"], "add-every: expected 0.1 to 86,400 seconds"),
        (["2", "--set", "nonsense"], "node 1 ended: --set nonsense: expected name=value"),
        (["2", "--set", "membership.nope=1"], "node 1 ended: stack.membership.nope: unknown key"),
        (["2", "--set", "total.balls.c=2"], "node 1 ended: order_settings are for topics that have an order"),
    ],
)
def test_bad_options_are_refused(shell: Shell, words: list[str], said: str) -> None:
    assert said in shell.refusal("cluster", *words)


def test_a_folder_that_is_not_empty_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    assert "is not empty: choose a new folder" in shell.refusal("cluster", 2, "--trace", tmp_path)


def test_what_is_missing_is_told() -> None:
    outcome = Outcome(100, 1000, 1.0, {1: 100, 2: 100, 3: 97}, 10)
    assert outcome.missing == {3: 3}
    assert "NOT delivered by 1 of 3 nodes: node 3 lacks 3" in str(outcome_view(outcome))
    alone = Outcome(100, 1000, 1.0, {1: 100})
    assert alone.copies_per_delivery is None
    assert "delivered by all 1 nodes" in str(outcome_view(alone))


def test_a_plan_is_checked() -> None:
    Plan(200, ["epicast", "node"], base_port=65_136).check()


def between_areas(stack: str, nodes: int = 10) -> dict[str, int]:
    words = ("cluster", nodes, "--areas", 3, "--far-delay", "10ms", "--stack", stack, "--json")
    with Program(*words, "--messages", 60, "--rate", 60, "--payload", 2000, "--seconds", 0) as cluster:
        cluster.json()
        played, _summary = cluster.json(), cluster.json()
        assert (cluster.wait(), cluster.rest()) == (0, [])
        said = [line for line in cluster.errors() if not line.endswith("nodes have started")]  # that takes its time
        assert said == []
    assert (played["delivered"], played["missing"]) == (60 * nodes, [])
    return {"near": played["sent_near_bytes"], "far": played["sent_far_bytes"]}


def test_stacks_that_know_about_areas_send_far_less_between_them() -> None:
    """The same workload on real sockets; what a flood over Scamp sends against Emergent and BRISA over CLON."""
    flooded = between_areas("scamp-flood")
    assert flooded["far"] > flooded["near"], "two of three neighbours are in another area"
    for stack in ("clon-emergent", "clon-brisa"):
        sent = between_areas(stack)
        assert sent["far"] < flooded["far"] / 4, stack


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--areas", 9), "areas: expected 1 to 4, as many as there are nodes, got 9"),
        (("--areas", 2, "--far-delay", "soon"), "far-delay: expected a time like 25ms, got 'soon'"),
    ],
)
def test_areas_that_make_no_sense_are_refused(shell: Shell, words: tuple[object, ...], error: str) -> None:
    answer = shell("cluster", 4, *words)
    assert (answer.code, answer.out) == (2, "")
    assert error in answer.err
