"""One run of a sweep: played, found again, or failed for a reason; never half there."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from epicast.pipeline.layout import Layout
from epicast.pipeline.sweep import play as module
from epicast.pipeline.sweep.experiment import Experiment, Run
from epicast.pipeline.sweep.play import DONE, FAILED, FOUND, play
from epicast.sim.world import World
from epicast.trace.run import RunFolder

COMMAND = ["epicast", "run", "x"]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "out").make()


@pytest.fixture
def run() -> Run:
    scenario = {"stack": "flood", "nodes": 8, "warmup": "2s", "workload": {"messages": 2}}
    return Experiment.load({"title": "x", "scenario": scenario}).run(0)


def test_a_run_is_played_once_and_found_from_then_on(layout: Layout, run: Run) -> None:
    first = play(run, layout, COMMAND)
    folder = RunFolder.open(layout.run(run.name)).require_complete()
    assert first.status == DONE
    assert first.rows == folder.info.rows > 0
    assert folder.info.command == COMMAND
    assert play(run, layout, COMMAND) == type(first)(FOUND, rows=first.rows)
    assert not list(layout.unfinished.iterdir())


def test_a_killed_attempt_does_not_disturb_the_next(layout: Layout, run: Run) -> None:
    left = layout.unfinished / f"{run.name}-killed"
    left.mkdir()
    (left / "run.json").write_text("{")
    assert play(run, layout, COMMAND).status == DONE


def test_a_damaged_run_is_played_again(layout: Layout, run: Run) -> None:
    play(run, layout, COMMAND)
    part = RunFolder.open(layout.run(run.name)).event_files()[0]
    part.write_bytes(part.read_bytes()[:100])
    assert play(run, layout, COMMAND).status == DONE
    RunFolder.open(layout.run(run.name)).require_complete()


def test_an_attempt_that_comes_second_leaves_the_first_alone(
    layout: Layout, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = module.play_into

    def slower(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        monkeypatch.setattr(module, "play_into", original)
        play(run, layout, COMMAND)  # the other attempt ends first
        return result

    monkeypatch.setattr(module, "play_into", slower)
    assert play(run, layout, COMMAND).status == DONE
    RunFolder.open(layout.run(run.name)).require_complete()
    assert not list(layout.unfinished.iterdir())


def test_a_mistake_in_a_protocol_fails_its_run_and_says_why(
    layout: Layout, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: World, *args: object) -> None:
        raise ZeroDivisionError("by\nnothing")

    monkeypatch.setattr(World, "run", broken)
    outcome = play(run, layout, COMMAND)
    assert (outcome.status, outcome.reason) == (FAILED, "ZeroDivisionError: by nothing")
    assert not layout.run(run.name).exists()
    assert not list(layout.unfinished.iterdir())


def test_a_full_disk_fails_the_run_in_one_line(layout: Layout, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "mkdtemp", full)
    outcome = play(run, layout, COMMAND)
    assert outcome.status == FAILED
    assert outcome.reason.endswith("unfinished: No space left on device")


def test_the_journal_tells_how_each_run_ended(layout: Layout, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    play(run, layout, COMMAND)
    monkeypatch.setattr(module, "_finished", lambda folder: None)
    monkeypatch.setattr(module, "_played", lambda *args: 1 / 0)
    play(run, layout, COMMAND)
    assert layout.journal.path.read_text() == f"{run.name} ended\n{run.name} failed\n"
