"""`epicast check` on runs that are sound, broken, damaged or no runs at all: a verdict, or one line and exit code 2."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from epicast.cli.main import run as epicast
from epicast.pipeline import session as module
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.run import RunFolder
from tests.pipeline.histories import History

SMALL = {"stack": "brisa", "nodes": 12, "warmup": "5s", "drain": "30s", "workload": {"messages": 3}}


@pytest.fixture
def one_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command uses the session that is there, and leaves it running."""

    @contextmanager
    def shared(master: str | None = None, *, ui: bool = False) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(module, "session", shared)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "sound"
    play_into(folder, World(Scenario.load(SMALL), 1), ["epicast"])
    return folder


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def broken(folder: Path) -> Path:
    history = History(3)
    post = history.publish(0)
    history.deliver(1, post)
    history.deliver(1, post)
    history.deliver(2, post)
    return history.save(folder).path


def test_a_sound_run_keeps_what_it_promised(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert epicast(["check", str(sound), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    verdicts = {each["guarantee"]: each for each in told["guarantees"]}
    assert (told["runs"], told["broken"], told["not_judged"]) == (1, False, [])
    assert verdicts["agreement"]["promised"]
    assert verdicts["agreement"]["checked"] == 36
    assert not verdicts["fifo"]["promised"]
    assert not verdicts["accounting"]["judged"]  # the trace holds deliveries only


def test_a_broken_promise_is_shown_with_its_rows_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken(tmp_path / "broken")
    assert epicast(["check", str(folder), "-q"]) == 1
    out = capsys.readouterr().out
    assert "broken in 1 run" in out
    assert "rows" in out


def test_holes_and_inversions_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def total(folder: Path, code: int) -> dict[str, Any]:
        assert epicast(["check", str(folder), "--json"]) == code
        told = json.loads(capsys.readouterr().out)
        return next(each for each in told["guarantees"] if each["guarantee"] == "total")

    history = History(4)
    a, b = history.publish(0), history.publish(1)
    history.deliver(2, a, b)
    history.save(tmp_path / "runs" / "holes", ["total"])
    found = total(tmp_path / "runs" / "holes", 0)
    assert (found["violations"], found["numbers"]) == (0, {"holes": 4, "inversions": 0, "knots": 0})
    history.deliver(3, b, a)
    history.save(tmp_path / "runs" / "swapped", ["total"])
    found = total(tmp_path, 1)
    assert (found["violations"], found["numbers"]) == (2, {"holes": 6, "inversions": 1, "knots": 1})
    assert epicast(["check", str(tmp_path), "-q"]) == 1
    assert "6 holes, 1 inversions" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_all_runs_of_a_sweep_are_judged_and_the_damaged_ones_named(
    engine: str, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(sound, tmp_path / "sweep" / "runs" / "a")
    damaged = Path(shutil.copytree(sound, tmp_path / "sweep" / "runs" / "b"))
    part = RunFolder.open(damaged).event_files()[0]
    part.write_bytes(part.read_bytes()[:200])
    assert epicast(["check", str(tmp_path / "sweep"), "--json", "--engine", engine]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 2
    assert [each["run"] for each in told["not_judged"]] == ["b"]
    assert "damaged" in told["not_judged"][0]["reason"]
    assert all(each["violations"] == 0 for each in told["guarantees"] if each["promised"])


def _truncate(folder: Path) -> None:
    part = RunFolder.open(folder).event_files()[0]
    part.write_bytes(part.read_bytes()[:-50])


def _empty(folder: Path) -> None:
    RunFolder.open(folder).event_files()[0].write_bytes(b"")


def _lose(folder: Path) -> None:
    RunFolder.open(folder).event_files()[0].unlink()


def _change(key: str, value: Any) -> Any:
    def change(folder: Path) -> None:
        content = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**content, key: value}))

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_truncate, "lost a file or holds a damaged one"),
        (_empty, "lost a file or holds a damaged one"),
        (_lose, "rows: run it again"),
        (_change("format_version", 99), "has format 99, this version reads 1"),
        (_change("status", "incomplete"), "is incomplete"),
        (_change("status", "running"), "was killed: run it again"),
        (_change("rows", 12), "of 12 rows"),
        (lambda folder: (folder / "run.json").write_text("{"), "is damaged"),
        (lambda folder: (folder / "run.json").unlink(), "neither a run folder nor a sweep"),
    ],
)
def test_a_run_that_cannot_be_judged_is_one_line_and_exit_code_2(
    copy: Path, damage: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(copy)
    assert epicast(["check", str(copy), "-q"]) == 2
    answer = capsys.readouterr()
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert answer.out == ""


@pytest.mark.parametrize(
    ("folder", "said"), [("nowhere", "there is no folder nowhere"), (".", "neither a run folder nor a sweep")]
)
def test_a_folder_without_runs_is_refused(
    folder: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert epicast(["check", folder, "-q"]) == 2
    assert said in capsys.readouterr().err


def test_a_sweep_without_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()
    assert epicast(["check", str(tmp_path), "-q"]) == 2
    assert "holds no runs" in capsys.readouterr().err
