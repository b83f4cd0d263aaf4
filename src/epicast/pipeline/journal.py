"""How the driver knows how far the executors are: each task writes a line when it has ended one run, the driver reads.

It only informs. What counts is in the tables that a stage writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from epicast.core.errors import EpicastError
from epicast.trace.files import one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_EVERY_S = 0.2

Progress = Callable[[int, int, int], None]
"""Is told how many runs have ended, how many of these failed, and how many there are."""


@dataclass(frozen=True)
class Journal:
    path: Path

    def begin(self) -> None:
        self.path.write_bytes(b"")

    def note(self, run: str, *, failed: bool) -> None:
        """One short write to a file opened for appending: lines of several executors do not mix."""
        with suppress(OSError):
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, f"{run} {'failed' if failed else 'ended'}\n".encode())
            finally:
                os.close(handle)


def watched(
    work: Callable[[], None], spark: SparkSession, journal: Journal, count: int, on_progress: Progress | None
) -> None:
    """Do the work of a stage in another thread, and tell how far it is."""
    journal.begin()
    failure: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # it belongs to the caller
            failure.append(error)

    thread = Thread(target=run, name="stage", daemon=True)
    thread.start()
    tally = _Tally(journal.path, count, on_progress)
    try:
        while thread.is_alive():
            thread.join(LOOK_EVERY_S)
            tally.look()
    except KeyboardInterrupt:
        spark.interruptAll()
        raise
    if failure:
        raise _explained(failure[0], tally) from None


class _Tally:
    def __init__(self, path: Path, count: int, on_progress: Progress | None) -> None:
        self.path, self.count, self.on_progress = path, count, on_progress
        self.ended = self.failed = 0  # a second attempt at the same run, which is rare, counts twice
        self._read = 0

    def look(self) -> None:
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self._read += len(whole)
            self.ended = min(self.count, self.ended + whole.count(b"\n"))
            self.failed = min(self.ended, self.failed + whole.count(b" failed\n"))
        if self.on_progress is not None:
            self.on_progress(self.ended, self.failed, self.count)


def _explained(error: BaseException, tally: _Tally) -> BaseException:
    from pyspark.errors import PySparkException  # not needed by those that only name a journal

    if not isinstance(error, PySparkException):
        return error
    kept = tally.ended - tally.failed
    return EpicastError(
        f"Spark stopped: {one_line(error)}; {kept} of {tally.count} runs are kept: run the same command again to go on"
    )
