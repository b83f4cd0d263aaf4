"""Calls the command line: in this process for speed, in one of its own where that matters."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from epicast.cli.main import run


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that was printed, and nothing beside it."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


class Shell:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> Answer:
        self.capsys.readouterr()
        code = run([str(word) for word in words])
        return Answer(code, *self.capsys.readouterr())

    def refusal(self, *words: object) -> str:
        """The one line with which bad input is refused."""
        answer = self(*words)
        assert (answer.code, answer.out) == (2, ""), answer
        assert answer.err.startswith("epicast: error: "), answer.err
        assert answer.err.count("\n") == 1, answer.err
        return answer.err


def start(program: str, *words: object) -> subprocess.Popen[str]:
    """Some Python in a process of its own, with the words as its arguments."""
    command = [sys.executable, "-c", program, *(str(word) for word in words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
