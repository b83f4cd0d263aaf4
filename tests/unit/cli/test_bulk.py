"""`epicast bulk` plays balls and bins at several sizes and tells what came of it, in a table, as JSON and on a page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from epicast.cli import bulk_page, bulk_view
from epicast.dissemination.ball_messages import BallsConfig
from epicast.sim.bulk import sizes
from epicast.sim.bulk.sizes import Outcome, Range, Size, SizesConfig
from tests.unit.cli.shell import Shell, start

SMALL = ("bulk", "--nodes", "50,200", "--seeds", 3, "--quiet")


def test_each_size_has_its_numbers(shell: Shell) -> None:
    found = shell(*SMALL, "--json").json
    assert [(size["nodes"], size["fanout"], size["rounds"]) for size in found["sizes"]] == [(50, 16, 8), (200, 18, 10)]
    for size in found["sizes"]:
        delays = [size[name] for name in ("unordered_ms", "last_ms", "global_ms", "logical_ms")]
        means = [delay["mean"] for delay in delays]
        assert means == sorted(means)
        assert all(delay["low"] < delay["mean"] < delay["high"] for delay in delays)
        assert size["holes"] == 0
        assert size["bytes"] == round(size["copies"]["mean"] * 1040)


def test_the_seeds_decide(shell: Shell) -> None:
    answers = [shell(*SMALL, "--json", "--seed", seed).json["sizes"] for seed in (1, 1, 2)]
    assert answers[0] == answers[1] != answers[2]


def test_the_defaults_are_those_of_the_settings_and_of_the_protocol(shell: Shell) -> None:
    found = shell("bulk", "--nodes", 50, "--json").json
    settings = msgspec.to_builtins(SizesConfig(nodes=(50,)))
    assert {name: found[name] for name in settings} == {**settings, "nodes": [50]}
    assert (settings["c"], settings["period_us"]) == (BallsConfig().c, BallsConfig().period_us)


def test_the_table_has_a_row_for_each_size(shell: Shell) -> None:
    lines = shell(*SMALL, "--loss", 0.25).out.splitlines()
    assert lines[0] == "rounds of 125 ms · quantiles planetlab-epto · 25 % lost · c = 1.25 · 3 events each"
    assert [line.split()[:3] for line in lines if line.split()[1:2] in (["16"], ["18"])] == [
        ["50", "16", "8"],
        ["200", "18", "10"],
    ]


def test_what_nobody_got_has_no_delays(shell: Shell) -> None:
    (size,) = shell("bulk", "--nodes", 50, "--loss", 1, "--seeds", 2, "--json").json["sizes"]
    assert [size[name] for name in ("unordered_ms", "last_ms", "global_ms", "logical_ms")] == [None] * 4
    assert size["holes"] == 2 * 49
    assert size["unreached_predicted"] == 1
    assert shell("bulk", "--nodes", 50, "--loss", 1).out.count("–") == 4  # noqa: RUF001


def test_the_page_stands_alone(shell: Shell, tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    answer = shell(*SMALL, "--out", page)
    assert answer.code == 0
    assert str(page) in answer.out.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2
    assert "<script" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "0 of 744 were missed" in text


def test_the_page_says_what_was_missed() -> None:
    config = SizesConfig(nodes=(100,), loss=0.5, c=1.0)
    outcome = Outcome(1.0, 2.0, 3.0, 4.0, copies=10.0, holes=3)
    data = bulk_page.page(config, [Size(100, 17, 7, 0.0, (outcome, outcome))])
    (check,) = data.checks
    assert (check.verdict, check.measured) == ("differs", "6 of 198 were missed")
    assert check.reason == "50 % of the copies are lost, and events are passed on for 1 log2 n rounds."


def test_a_size_sums_its_seeds_up() -> None:
    rows = (Outcome(None, None, None, None, 1.0, 9), Outcome(2.0, 4.0, 6.0, 8.0, 3.0, 1))
    size = Size(10, 3, 4, 0.5, rows)
    assert size.holes == 10
    assert size.over_seeds("copies") == Range(2.0, 1.0, 3.0)
    assert size.over_seeds("last_ms") == Range(4.0, 4.0, 4.0)
    assert bulk_view.cells(SizesConfig(nodes=(10,)), size)[-3:] == ["2.0", "2.1 KB", "10"]


def test_progress_grows_to_the_whole() -> None:
    told: list[tuple[float, int, int]] = []
    sizes.measure(SizesConfig(nodes=(20, 50), seeds=2), lambda *state: told.append(state))
    shares = [share for share, _, _ in told]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.1
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "many"], "--nodes: expected whole numbers with commas between"),
        (["--nodes", "100,"], "--nodes: expected whole numbers"),
        (["--nodes", "1"], "nodes[0]: expected"),
        (["--nodes", "100,1000000000"], "nodes[1]: expected"),
        (["--seeds", "0"], "seeds: expected"),
        (["--seed", "-1"], "seed: expected"),
        (["--loss", "2"], "loss: expected"),
        (["--period", "soon"], "period_us: expected"),
        (["--period", "0ms"], "period_us: expected"),
        (["--c", "0"], "c: expected"),
        (["--payload", "-1"], "payload_bytes: expected"),
        (["--entry-bytes", "-1"], "entry_bytes: expected"),
        (["--latency", "slow"], "write one of: constant 50ms"),
        (["--latency", "normal 50ms 10ms"], "takes constant, uniform, and quantiles"),
        (["--out", "page.svg"], "ends in .html"),
    ],
)
def test_bad_input_is_refused(shell: Shell, words: list[str], said: str) -> None:
    assert said in shell.refusal("bulk", *words)


def test_a_page_that_cannot_be_written_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "cannot write" in shell.refusal(*SMALL, "--out", tmp_path / "file" / "page.html")


@pytest.mark.parametrize(("missing", "words"), [("numba", []), ("matplotlib", ["--out", "page.html"])])
def test_without_its_libraries_it_says_what_to_install(missing: str, words: list[str], tmp_path: Path) -> None:
    code = f"import os, sys; os.chdir({str(tmp_path)!r}); sys.modules[{missing!r}] = None\n"
    with start(code + "from epicast.cli.main import main; main()", *SMALL, *words) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err.endswith("pip install 'epicast[pipeline]'\n")
    assert err.count("\n") == 1


def test_help_does_not_load_the_kernel() -> None:
    code = "import sys\nfrom epicast.cli.main import run\nrun(['bulk', '--help'])\n"
    with start(code + "sys.exit('numba' in sys.modules or 'numpy' in sys.modules)") as process:
        process.communicate(timeout=60)
    assert process.returncode == 0
