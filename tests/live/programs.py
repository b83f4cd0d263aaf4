"""The commands in processes of their own, spoken to line by line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import IO, Any

# Whoever runs the tests may have told its children to ignore Ctrl-C.
MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from epicast.cli.main import main
main()
"""
TIMEOUT_S = 60.0


class Program:
    """`with Program("node", "--seed", address) as node: ...` It is killed at the end, if it still runs."""

    def __init__(
        self,
        *words: object,
        stdin: bytes | None = None,
        stdin_from: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        cwd: Path | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            stdin=stdin_from,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=cwd,
        )
        self._out, self._err = _read(self.process.stdout), _read(self.process.stderr)
        self.said: list[str] = []  # on stderr, as far as it was read
        if stdin is not None:
            self.write(stdin)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def write(self, data: bytes, *, end: bool = True) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()
        if end:
            self.process.stdin.close()

    def line(self) -> str:
        """The next one on stdout."""
        line = self._out.get(timeout=TIMEOUT_S)
        assert line is not None, f"it ended: {self.errors()}"
        return line

    def json(self) -> dict[str, Any]:
        found = json.loads(self.line())
        assert isinstance(found, dict)
        return found

    def rest(self) -> list[str]:
        """All further lines on stdout, to its end."""
        lines = []
        while (line := self._out.get(timeout=TIMEOUT_S)) is not None:
            lines.append(line)
        return lines

    def until(self, text: str) -> str:
        """The first line on stderr with that in it."""
        while (line := self._err.get(timeout=TIMEOUT_S)) is not None:
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended and never said {text!r}: {self.said}")

    def errors(self) -> list[str]:
        """All of stderr; only after the end."""
        try:
            while (line := self._err.get(timeout=TIMEOUT_S)) is not None:
                self.said.append(line)
        except Empty:
            pass
        self._err.put(None)
        return self.said

    def wait(self) -> int:
        return self.process.wait(TIMEOUT_S)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()


def _read(stream: IO[bytes] | None) -> Queue[str | None]:
    lines: Queue[str | None] = Queue()
    if stream is None:  # it goes elsewhere
        lines.put(None)
        return lines

    def read() -> None:
        with stream:
            for line in stream:
                lines.put(line.decode("utf-8", "backslashreplace").rstrip("\n"))
        lines.put(None)

    Thread(target=read, daemon=True).start()
    return lines
