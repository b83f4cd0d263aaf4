"""Ctrl-C ends a run in good order: what happened so far is told, and the run folder does not claim to be whole."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from epicast.cli import compare
from epicast.trace.run import RunFolder
from tests.unit.cli.shell import Shell, start

# Says at once that the run has begun.
EAGER = """
from epicast.cli import main, progress
progress.LINE_EVERY_S = 0.0
main.main()
"""


def test_an_interrupted_run_tells_what_happened_so_far(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("sim", "--nodes", 50, "--messages", 1_000_000, "--trace", folder, "--json")
    with start(EAGER, *words) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("epicast: interrupted at ")
    found = json.loads(out)
    assert (found["interrupted"], found["complete"]) == (True, False)
    assert found["events"] > 0
    info = RunFolder.open(folder).info
    assert (info.status, info.reason) == ("incomplete", "interrupted")


def test_an_interrupted_comparison_is_none(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "_outcome", interrupted)
    assert shell("compare") == (130, "", "epicast: interrupted\n")
