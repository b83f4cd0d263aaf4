"""Completion in a shell: the script is printed, never written; a shell that runs it gets commands and names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.shell import Shell

PROGRAM = """#!/bin/sh
exec {python} -m epicast "$@"
"""
BASH = """
eval "$(epicast completion bash)"
COMP_WORDS=({words})
COMP_CWORD={at}
$(complete -p epicast | sed 's/.*-F \\([^ ]*\\) .*/\\1/') epicast
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words, with a home that stays as it is."""
    program = folder / "bin" / "epicast"
    program.parent.mkdir(exist_ok=True)
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH.format(words=" ".join(f"'{word}'" for word in words), at=len(words) - 1)],
        env=os.environ | {"PATH": path, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert list(home.iterdir()) == []
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_names(tmp_path: Path) -> None:
    assert {"sim", "check", "top", "completion"} <= set(completed(tmp_path, "epicast", ""))
    assert completed(tmp_path, "epicast", "mem") == ["members"]
    assert "--engine" in completed(tmp_path, "epicast", "check", "--eng")
    assert completed(tmp_path, "epicast", "sim", "--stack", "causal-f") == ["causal-flood"]
    assert completed(tmp_path, "epicast", "run", "br-6") == ["br-6-7"]
    assert completed(tmp_path, "epicast", "keys", "is") == ["issue"]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(shell: Shell, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = shell("completion", name)
    assert (answer.code, answer.err) == (0, "")
    assert f"_EPICAST_COMPLETE=complete_{name}" in answer.out
    monkeypatch.setenv("SHELL", f"bin/{name}")
    assert shell("completion") == answer


def test_a_shell_that_is_not_known_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "completion: expected bash, zsh, fish, got 'tcsh'" in shell.refusal("completion", "tcsh")
    monkeypatch.delenv("SHELL", raising=False)
    assert "completion: expected bash, zsh, fish, got ''" in shell.refusal("completion")
