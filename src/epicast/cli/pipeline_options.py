"""What the commands of the pipeline have in common: where Spark runs, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epicast.cli.output import console, note
from epicast.cli.progress import LINE_EVERY_S, Every

if TYPE_CHECKING:
    from epicast.pipeline.journal import Progress

Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where Spark runs: local[N], spark://host:port or sc://host:port. Default: here."),
]
Ui = Annotated[bool, typer.Option("--spark-ui", help="Serve Spark's own page while the command runs.")]


@contextmanager
def stages(*, quiet: bool) -> Iterator[Any]:
    """Gives a function that begins a stage and returns whom to tell about its progress."""
    if quiet:
        yield lambda title: None
    elif sys.stderr.isatty():
        with _bars() as stage:
            yield stage
    else:
        yield _lines


@contextmanager
def _bars() -> Iterator[Any]:
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description:<10}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[state]}"),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=console(stderr=True), transient=True) as bars:

        def stage(title: str) -> Progress:
            task = bars.add_task(title, total=None, state="")

            def report(ended: int, failed: int, count: int) -> None:
                bars.update(task, completed=ended, total=count, state=_state(ended, failed, count))

            return report

        yield stage


def _lines(title: str) -> Progress:
    due = Every(LINE_EVERY_S)
    due()  # a short stage needs no line

    def report(ended: int, failed: int, count: int) -> None:
        if due():
            note(f"{title}: {ended:,} of {count:,} runs, {_state(ended, failed, count)}")

    return report


def _state(ended: int, failed: int, count: int) -> str:
    return f"{failed:,} failed, {count - ended:,} remaining"
