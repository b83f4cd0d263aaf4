"""`epicast sim` plays what the file and the flags say, and prints or keeps what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epicast.cli import progress
from epicast.sim.scenario import Scenario
from epicast.trace.run import RunFolder
from tests.unit.cli.shell import Shell

SMALL = ("--nodes", 20, "--messages", 5, "--warmup", "2s")
KEYS = {
    "delivery_ratio",
    "copies_per_delivery",
    "duplicates_per_delivery",
    "latency_ms",
    "hops",
    "messages_by_layer",
    "bytes_by_layer",
    "tree",
    "repairs",
    "events",
    "events_per_second",
    "trace_digest",
    "interrupted",
    "run_folder",
}


def summary(shell: Shell, *words: object) -> dict[str, Any]:
    answer = shell("sim", *words, "--json")
    assert (answer.code, answer.err) == (0, "")
    return answer.json


def test_the_summary_is_one_json_object(shell: Shell) -> None:
    found = summary(shell, "--stack", "brisa", *SMALL, "--rate", 5, "--payload", 1000, "--seed", 3)
    assert set(found) >= KEYS
    assert set(found["latency_ms"]) >= {"p50", "p99", "max"}
    assert set(found["hops"]) >= {"mean", "max"}
    assert set(found["tree"]) >= {"depth_max", "leaf_share"}
    assert set(found["repairs"]) >= {"soft", "hard"}
    assert found["delivery_ratio"] == 1.0
    assert (found["messages"], found["seed"], found["deliveries"]) == (5, 3, 100)
    assert found["events_per_second"] > 0
    assert found["run_folder"] is None


def test_without_json_it_is_a_table(shell: Shell) -> None:
    answer = shell("sim", *SMALL, "--stack", "flood")
    assert answer.code == 0
    assert "flood · 20 nodes · 5 of 5 messages published · seed 7" in answer.out
    assert "100 % (100 of 100 owed)" in answer.out
    assert "dissemination" in answer.out
    assert "Tree" not in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100


def test_the_table_of_a_tree_tells_its_shape_and_repairs(shell: Shell) -> None:
    out = shell("sim", *SMALL, "--churn", "at 0s crash 2").out
    assert "depth" in out
    assert "soft" in out
    assert "2 crashed · 18 up at the end" in out


def test_the_same_seed_gives_the_same_run_on_any_engine(shell: Shell) -> None:
    digests = [
        summary(shell, *SMALL, *more)["trace_digest"]
        for more in (["--seed", 1], ["--seed", 1, "--engine", "pure"], ["--seed", 1, "--codec-check"], ["--seed", 2])
    ]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_flags_win_over_the_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(
        'stack = "static-flood"\nnodes = 30\nseed = 5\nwarmup = "1s"\n[workload]\nmessages = 9\nsources = 3'
    )
    found = summary(shell, file)
    assert (found["stack"], found["nodes"]["started"], found["messages"], found["seed"]) == ("static-flood", 30, 9, 5)
    found = summary(shell, file, "--nodes", 12, "--messages", 2, "--warmup", "2s", "--set", "joins.degree=4")
    assert (found["nodes"]["started"], found["messages"], found["seed"]) == (12, 2, 5)
    assert found["copies_per_delivery"] < 4.5


def test_set_reaches_the_roles_of_the_stack_and_the_scenario(shell: Shell, tmp_path: Path) -> None:
    assignments = ["membership.active_size=3", "dissemination.strategy=delay-aware", "network.connect=5ms", "drain=9s"]
    words = [word for each in assignments for word in ("--set", each)]
    summary(shell, *SMALL, "--trace", tmp_path / "run", *words)
    kept = Scenario.read(tmp_path / "run" / "scenario.toml")
    assert kept.overrides == {"membership": {"active_size": 3}, "dissemination": {"strategy": "delay-aware"}}
    assert (kept.network.connect_us, kept.drain_us) == (5_000, 9_000_000)


def test_a_stack_of_ones_own_comes_from_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\n[membership]\nprotocol = "static"\n[dissemination]\nprotocol = "flood"\n')
    assert summary(shell, "--stack", file, *SMALL)["stack"] == "mine"


def test_a_trace_is_a_complete_run_folder_that_can_be_played_again(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    found = summary(shell, *SMALL, "--seed", 11, "--trace", folder)
    run = RunFolder.open(folder).require_complete()
    assert (run.info.seed, run.info.level, run.info.command[0]) == (11, "deliveries", "epicast")
    assert run.info.digest == found["trace_digest"]
    assert run.info.counters["deliveries"] == found["deliveries"] == 100
    assert found["run_folder"] == str(folder)
    again = summary(shell, folder / "scenario.toml")
    assert again["trace_digest"] == found["trace_digest"]


def test_the_full_level_holds_every_message(shell: Shell, tmp_path: Path) -> None:
    few = summary(shell, *SMALL, "--trace", tmp_path / "few")
    all_of_it = summary(shell, *SMALL, "--trace", tmp_path / "all", "--trace-level", "full")
    rows = [RunFolder.open(tmp_path / name).require_complete().info.rows for name in ("few", "all")]
    assert rows[1] > rows[0] + sum(all_of_it["messages_by_layer"].values())
    assert all_of_it["deliveries"] == few["deliveries"]


def test_a_complete_run_is_replaced_only_on_request(shell: Shell, tmp_path: Path) -> None:
    words = ("sim", *SMALL, "--trace", tmp_path / "run", "--json")
    assert shell(*words).code == 0
    assert "holds a complete run" in shell.refusal(*words)
    assert shell(*words, "--overwrite", "--seed", 9).code == 0
    assert RunFolder.open(tmp_path / "run").require_complete().info.seed == 9


def test_a_run_that_fails_is_marked_incomplete(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("epicast.dissemination.flood.Flood.broadcast", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        shell("sim", *SMALL, "--stack", "flood", "--trace", tmp_path / "run")
    assert "epicast" in caught.value.__notes__[0]
    info = RunFolder.open(tmp_path / "run").info
    assert (info.status, info.reason) == ("incomplete", "ZeroDivisionError: a bug")


def test_progress_is_lines_where_there_is_no_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    lines = shell("sim", *SMALL, "--json").err.splitlines()
    assert lines[-1].startswith("epicast: brisa, 20 nodes: 100%, ")
    assert lines[-1].endswith(" events")
    assert shell("sim", *SMALL, "--quiet").err == ""
