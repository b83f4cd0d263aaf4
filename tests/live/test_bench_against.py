"""`epicast bench live --against` and `bench engine --against`: the epicast of another environment, by one driver."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from epicast.cli.benchmarks import against, against_bench, against_engine
from epicast.cli.benchmarks.against import NEW, OLD, Environment, Sample, Versions, alternate, judged, ratios
from epicast.cli.benchmarks.against_engine import Run
from epicast.cli.benchmarks.live_job import SIGNED, Job
from epicast.cli.benchmarks.live_pair import measure_pair
from epicast.core.errors import EpicastError
from tests.tidy.source import SRC
from tests.unit.cli.shell import Shell

QUICK = {"turns": 1, "seconds": 0.2}
CELLS = (Run("flood", "static-flood", 20, 2), Run("brisa", "brisa", 20, 2))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of another environment: the same packages, but an epicast of its own, with another version."""
    folder = tmp_path_factory.mktemp("other")
    copy = folder / "packages" / "epicast"
    shutil.copytree(SRC, copy, ignore=shutil.ignore_patterns("__pycache__", "pipeline", "benchmarks"))
    text = (copy / "__init__.py").read_text(encoding="utf-8")
    (copy / "__init__.py").write_text(text.replace('__version__ = "', '__version__ = "0.0.older.'), encoding="utf-8")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={copy.parent} exec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return str(python)


def test_the_other_environment_is_another_epicast(other: str) -> None:
    ours, theirs = Environment.ours(), Environment.of(other)
    assert theirs.version.startswith("0.0.older.")
    assert theirs.package != ours.package
    assert (theirs.interpreter, theirs.compiled) == (ours.interpreter, ours.compiled)


def test_a_package_path_of_ours_does_not_lead_to_our_epicast(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SRC.parent))
    assert Environment.of(other).version.startswith("0.0.older.")
    assert "PYTHONPATH" not in against.surroundings()


def test_what_is_no_environment_with_epicast_is_refused(shell: Shell, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    for kind in ("live", "engine"):
        assert "nowhere is no program" in shell.refusal("bench", kind, "--against", "nowhere")
        assert "has no epicast that can be measured: ModuleNotFoundError" in shell.refusal(
            "bench", kind, "--against", bare
        )


def test_pure_parts_are_not_compared_with_compiled_ones(other: str) -> None:
    ours, theirs = Environment.ours(), Environment.of(other)
    against.require_alike(ours, theirs)
    pure = msgspec.structs.replace(theirs, compiled=dict.fromkeys(theirs.compiled, not ours.compiled["live"]))
    with pytest.raises(EpicastError, match="runs without its compiled live, the other one with it: build both alike"):
        against.require_alike(ours, pure)


def test_what_does_not_go_with_it_is_refused(shell: Shell) -> None:
    assert "--nodes and --against do not go together" in shell.refusal(
        "bench", "engine", "--against", sys.executable, "--nodes", 100
    )
    assert "with --against there are epicast, epicast-tcp, epicast-tls, epicast-signed; got nats" in shell.refusal(
        "bench", "live", "--against", sys.executable, "--systems", "nats"
    )


# Real measurements


@pytest.mark.parametrize("system", ["epicast", SIGNED])
def test_two_versions_of_nodes_are_measured_side_by_side(other: str, system: str) -> None:
    job = Job(system, 2, 200, probes=5)
    jobs = {version: msgspec.structs.replace(job, python=python) for version, python in two(other).items()}
    found = measure_pair(jobs, turns=2, seconds=0.2)
    assert list(found) == [NEW, OLD]
    for sample in found.values():
        assert sample.error == ""
        assert sample.cpu_us is not None
        assert 0.1 < sample.cpu_us < 100_000


def two(other: str) -> dict[str, str]:
    return {NEW: sys.executable, OLD: other}


def test_the_driver_is_ours_and_the_library_is_theirs(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whose.py").write_text("import epicast, sys; print(epicast.__version__, __file__, sys.argv[1])")
    monkeypatch.setattr(against, "FOREIGN", Path(shutil.copy(against.FOREIGN, tmp_path)))
    version, place, argument = against.run_module(other, "whose", "argument").split()
    assert version.startswith("0.0.older.")
    assert (place, argument) == (str(tmp_path / "whose.py"), "argument")


def test_an_error_of_a_version_is_told(other: str) -> None:
    jobs = {version: Job("epicast", 1, 4, probes=1, python=python) for version, python in two(other).items()}
    assert {sample.error for sample in measure_pair(jobs, **QUICK).values()} == {  # type: ignore[arg-type]
        "publisher ended: ValueError: negative count"  # too short for the header
    }
    with pytest.raises(EpicastError, match="unknown stack 'nope'"):
        against.run_module(other, "against_engine", msgspec.json.encode(Run("brisa", "nope", 20, 2)).decode())


def test_an_engine_is_measured_through_the_public_call_alone() -> None:
    text = Path(against_engine.__file__).read_text(encoding="utf-8")
    assert [line.split()[1] for line in text.splitlines() if "import " in line and "epicast" in line] == ["epicast"]


def test_simulations_of_both_versions_are_compared(other: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_bench, "RUNS", CELLS)
    answer = shell("bench", "engine", "--against", other, "--quick", "--rounds", 2, "--json")
    assert answer.code == 0
    found = answer.json
    assert {cell["name"] for cell in found["cells"]} == {"flood, 20 nodes", "brisa, 20 nodes"}
    assert set(found["targets"]) == {"flood", "brisa", "all", "faults"}
    assert found["versions"]["old"]["version"].startswith("0.0.older.")
    assert found["targets"]["faults"]["met"] is True
    assert all(len(cell["ratios_of_rounds"]) == 2 and cell["errors"] == [] for cell in found["cells"])
    assert len(answer.err.splitlines()) == 4
    assert "1/4 flood, 20 nodes: new " in answer.err
    assert "3/4 flood, 20 nodes: old " in answer.err  # the other one begins in the second round


# What it comes to


def pairs(*of_rounds: tuple[float | None, float | None]) -> list[dict[str, Sample]]:
    return [{NEW: Sample(new, "" if new else "gone"), OLD: Sample(old)} for new, old in of_rounds]


def test_the_median_of_a_cell_and_the_mean_of_cells_are_judged() -> None:
    found = [pairs((1.0, 1.0), (9.0, 1.0), (1.2, 1.0)), pairs((3.0, 4.0), (3.0, 4.0), (9.0, 4.0))]
    assert ratios(found[0]) == [1.0, 9.0, 1.2]
    assert judged(CELLS, found) == {"flood": 1.2, "brisa": 0.75, "all": pytest.approx(0.9487, abs=1e-4), "faults": 0}
    same = (CELLS[0], CELLS[0])
    assert judged(same, found) == {"flood": pytest.approx(0.9487, abs=1e-4), "faults": 0}


def test_a_failed_measurement_counts_as_a_fault_of_the_newer_version_only() -> None:
    found = [pairs((None, 1.0), (1.0, 1.0)), pairs((1.0, None), (2.0, 1.0))]
    assert judged(CELLS, found)["faults"] == 1
    assert ratios(found[0]) == [1.0]
    nothing = judged(CELLS, [pairs((None, 1.0)), pairs((1.0, None))])
    assert (nothing["flood"], nothing["brisa"], nothing["all"]) == (None, None, None)


def test_the_versions_take_turns_in_beginning() -> None:
    began: list[str] = []

    def play(cell: Any, versions: Versions) -> dict[str, Sample]:
        began.append(next(iter(versions)))
        return dict.fromkeys(versions, Sample(1.0))

    same = Environment.ours()
    told: list[str] = []
    found = alternate(CELLS, {NEW: same, OLD: same}, 2, play, lambda *facts: told.append(facts[3].outcome))
    assert began == [NEW, NEW, OLD, OLD]
    assert [len(each) for each in found] == [2, 2]
    assert told[0] == "new 1.00 us, old 1.00 us"


@pytest.mark.parametrize(("new_us", "code"), [(1.04, 0), (1.06, 1), (None, 1)])
def test_a_check_fails_for_more_than_five_percent(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, new_us: float | None, code: int
) -> None:
    monkeypatch.setattr(
        against_bench, "measure_pair", lambda jobs: {NEW: Sample(new_us, "" if new_us else "5 lost"), OLD: Sample(1.0)}
    )
    words = ("bench", "live", "--against", sys.executable, "--quick", "-q")
    answer = shell(*words, "--check")
    assert answer.code == code
    assert "both are the same package" in answer.out
    assert ("missed" in answer.out) == (code == 1)
    assert shell(*words).code == 0
    found = shell(*words, "--json").json
    assert found["rounds"] == 7
    assert [cell["name"] for cell in found["cells"]] == [
        "plain, 8 subscribers, 1.0 KB",
        "plain, 32 subscribers, 1.0 KB",
        "TLS, 32 subscribers, 1.0 KB",
        "TLS and signatures, 32 subscribers, 1.0 KB",
    ]
    assert set(found["targets"]) == {"plain", "TLS", "TLS and signatures", "all", "faults"}
