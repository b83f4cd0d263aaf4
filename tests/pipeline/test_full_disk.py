"""An experiment on a disk that is really too small: it says so, keeps what it has, and goes on when there is room."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENT = """
title = "Small"
seeds = 6
[scenario]
stack = "flood"
nodes = 64
[scenario.workload]
messages = 400
rate = 50
"""
SCRIPT = """
mount -t tmpfs -o size=4m none {disk} || exit 77
"$@"; first=$?
cp {disk}/out/report.html {out}/first.html
mount -o remount,size=200m {disk}
"$@"; echo "exit $first $?"
"""


def private_mounts() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not private_mounts(), reason="a small disk of one's own needs a private mount namespace")
def test_a_disk_that_fills_up_loses_nothing_that_was_written(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    disk = tmp_path / "disk"
    disk.mkdir()
    epicast = [sys.executable, "-m", "epicast.cli.main", "run", str(tmp_path / "small.toml"), "--json", "-q"]
    script = SCRIPT.format(disk=disk, out=tmp_path)
    command = ["unshare", "-rm", "sh", "-c", script, "sh", *epicast, "--out", str(disk / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets nobody mount a small disk")
    assert done.stderr == ""
    first, second, codes = done.stdout.splitlines()
    assert codes == "exit 2 0"
    short, whole = json.loads(first), json.loads(second)
    assert 0 < short["failed"] <= 6
    assert all("No space left on device" in failure["reason"] for failure in short["failures"])
    assert all("\n" not in failure["reason"] for failure in short["failures"])
    assert "No space left on device" in (tmp_path / "first.html").read_text()
    assert whole["failed"] == 0
    assert 0 < whole["played"] < 6, "what was kept is not played again"
