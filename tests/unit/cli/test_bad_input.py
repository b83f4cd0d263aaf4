"""Whatever a user gets wrong is one line on stderr that says what to do, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.shell import Shell


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stack", "nope"], "unknown stack 'nope'; known stacks: brisa"),
        (["--nodes", "-5"], "nodes: expected an integer from 1"),
        (["--nodes", "0"], "nodes: expected"),
        (["--nodes", "many"], "--nodes"),
        (["--nodes"], "--nodes"),
        (["--messages", "-1"], "workload.messages: expected"),
        (["--payload", "-1"], "workload.payload_bytes: expected"),
        (["--rate", "0"], "workload.rate: expected"),
        (["--pattern", "waltz"], "expected one of rate, burst, poisson"),
        (["--sources", "900"], "workload.sources: expected at most nodes"),
        (["--churn", "const chrn 3%"], "write const churn AMOUNT each TIME"),
        (["--latency", "slow"], "write one of: constant 50ms"),
        (["--loss", "2"], "network.loss: expected a number from 0.0 to 1.0"),
        (["--transport", "pigeon"], "expected one of tcp, datagram"),
        (["--seed", "-1"], "seed: expected"),
        (["--warmup", "soon"], 'a text like "250ms"'),
        (["--drain", "-5s"], "drain_us: expected"),
        (["--engine", "warp"], "expected one of auto, pure, compiled"),
        (["--trace-level", "off"], "expected one of deliveries, full"),
        (["--set", "active_size"], "expected name=value"),
        (["--set", "=5"], "expected name=value"),
        (["--set", "membership=5"], "expected a setting of the membership"),
        (["--set", "membership.activ_size=5"], "did you mean active_size?"),
        (["--set", "membership.active_size=0"], "active_size: expected"),
        (["--set", "network.los=0.1"], "network.los: unknown key; did you mean loss?"),
        (["--set", "nowhere.x=1"], "nowhere: unknown key"),
        (["--set", "nodes.x=1"], "nodes: expected"),
        (["--stak", "brisa"], "--stack"),
        (["one.toml", "two.toml"], "two.toml"),
    ],
)
def test_a_bad_option_is_refused(shell: Shell, words: list[str], said: str) -> None:
    assert said in shell.refusal("sim", *words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('stack = "brisa', "not TOML"),
        ("nodez = 5", "nodez: unknown key; did you mean nodes?"),
        ('nodes = "x"', "nodes: expected an integer"),
        ("stack = 5", "stack: expected"),
        ('[stack]\nmembership = "hyparview"', "stack.membership: expected a table"),
        ("[network]\nlos = 1", "network.los: unknown key; did you mean loss?"),
        ('churn = "at noon"', "churn line 1"),
    ],
)
def test_a_bad_scenario_file_is_named(shell: Shell, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    refusal = shell.refusal("sim", file)
    assert str(file) in refusal
    assert said in refusal


def test_a_scenario_file_must_be_there_and_be_text(shell: Shell, tmp_path: Path) -> None:
    assert "No such file" in shell.refusal("sim", tmp_path / "missing.toml")
    assert "directory" in shell.refusal("sim", tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in shell.refusal("sim", tmp_path / "binary.toml")


def test_a_bad_stack_file_is_refused(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "stack.toml"
    assert "No such file" in shell.refusal("sim", "--stack", file)
    file.write_text("=")
    assert "not TOML" in shell.refusal("sim", "--stack", file)
    file.write_text('[membership]\nprotocol = ["static"]')
    assert "expected one of static, scamp, cyclon, clon, hyparview" in shell.refusal("sim", "--stack", file)


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "cannot write a run" in shell.refusal("sim", "--trace", tmp_path / "file")
    assert "cannot write a run" in shell.refusal("sim", "--trace", tmp_path / "file" / "below")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    assert "choose an empty folder" in shell.refusal("sim", "--trace", tmp_path / "full")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fly"], "No such command 'fly'"),
        (["--fly"], "No such option: --fly"),
        (["bench"], "see epicast bench --help"),
        (["bench", "fly"], "No such command 'fly'"),
        (["bench", "engine", "--nodes", "5"], "--nodes: expected more than 9"),
        (["bench", "engine", "--rounds", "0"], "--rounds"),
        (["bench", "profile", "--stack", "nope"], "unknown stack"),
        (["compare", "--nodes", "0"], "nodes: expected"),
        (["compare", "--engine", "warp"], "expected one of auto, pure, compiled"),
        (["stacks", "brisa"], "brisa"),
    ],
)
def test_other_commands_refuse_alike(shell: Shell, words: list[str], said: str) -> None:
    assert said in shell.refusal(*words)
