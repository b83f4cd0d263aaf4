"""`epicast check`: which guarantees a run kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epicast.cli.pipeline_options import Master, Ui, stages

if TYPE_CHECKING:
    from epicast.pipeline.check import Checked

BROKEN, INCOMPLETE = 1, 2
ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}


def check(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or the folder of a sweep or of live nodes' journals.")
    ],
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="auto, duckdb (in this process) or spark; the verdicts are the same.")
    ] = "auto",
    master: Master = None,
    ui: Ui = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Judge what a run promised, from its trace alone.

    DuckDB judges up to 20 million rows in up to 200 runs, in this process. Spark judges more, and whatever --master is
    given for. Exit code 1: a promise was broken; 2: a run could not be judged.
    """
    from epicast.cli.output import console, note, print_json, show, unbroken
    from epicast.cli.runs import command
    from epicast.pipeline.check import merge_journals, require_folder

    require_folder(folder)
    merged = merge_journals(folder.resolve(), command())
    if merged is not None and not quiet:
        nodes = merged.info.counters["nodes"]
        stayed = f"{nodes['up_at_end']:,} processes stayed to the end"
        note(f"{nodes['started']:,} journals merged into {merged.path}; {stayed}")
    done = _judge(folder.resolve() if merged is None else merged.path, engine, master, ui=ui, quiet=quiet)
    if as_json:
        print_json(as_dict(done, folder))
    else:
        from rich.text import Text

        from epicast.cli.run_view import guarantees

        runs = f"{done.runs:,} run{'s' if done.runs != 1 else ''}"
        show(unbroken(f"{folder} · {runs} · judged by {ENGINES[done.engine]}", "bold"))
        console().print(guarantees(done.judged))
        for run, reason in done.unanalysed:
            console().print(Text(f"not judged: {run}: {reason}"))
    if done.broken or done.unanalysed:
        raise typer.Exit(BROKEN if done.broken else INCOMPLETE)


def _judge(folder: Path, engine: str, master: str | None, *, ui: bool, quiet: bool) -> Checked:
    from epicast.cli.output import note
    from epicast.pipeline.check import check_here, check_on_spark, choose, find_runs

    found = find_runs(folder)
    chosen, why = choose(engine, found, cluster=master is not None or ui)
    if chosen == "duckdb":
        with stages(quiet=quiet) as stage:
            return check_here(found, stage("checking"))
    if why and not quiet:
        note(f"judged by Spark: {why}")
    from epicast.pipeline.session import session

    with session(master, ui=ui) as spark, stages(quiet=quiet) as stage:
        return check_on_spark(spark, found, stage("checking"))


def as_dict(done: Checked, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "engine": done.engine,
        "runs": done.runs,
        "broken": done.broken,
        "guarantees": [
            {
                "guarantee": each.guarantee,
                "promised": each.promised,
                "judged": each.runs_judged > 0,
                "checked": each.checked,
                "violations": each.violations,
                "runs_broken": each.runs_broken,
                "numbers": each.numbers,
                "note": each.note,
                "examples": list(each.examples),
            }
            for each in done.judged
        ],
        "not_judged": [{"run": run, "reason": reason} for run, reason in done.unanalysed],
    }
