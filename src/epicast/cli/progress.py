"""How far a run has come: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from epicast.cli import formats
from epicast.cli.output import console, note

LINE_EVERY_S = 5.0
FRAME_EVERY_S = 0.1

Report = Callable[[float, int, int], None]
"""Takes the share that is done, the virtual time in microseconds and the number of events."""


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Report | None]:
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(title) as report:
            yield report
    else:
        yield _lines(title)


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[state]}")
    with Progress(*columns, console=console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(title, total=1.0, state="")
        due = Every(FRAME_EVERY_S)

        def report(share: float, now_us: int, events: int) -> None:
            if due():
                bar.update(task, completed=share, state=_state(now_us, events), refresh=True)

        yield report


def _lines(title: str) -> Report:
    due = Every(LINE_EVERY_S)
    due()  # a short run needs no line

    def report(share: float, now_us: int, events: int) -> None:
        if due():
            note(f"{title}: {share:.0%}, {_state(now_us, events)}")

    return report


def _state(now_us: int, events: int) -> str:
    return f"{now_us / 1e6:,.1f} s of virtual time, {formats.count(events)} events"


class Every:
    """True at most once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._last: float | None = None

    def __call__(self) -> bool:
        now = monotonic()
        if self._last is not None and now - self._last < self.seconds:
            return False
        self._last = now
        return True
