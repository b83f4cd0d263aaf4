"""`epicast run`: an experiment from the sweep to the report."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from epicast.cli import completion as names
from epicast.cli.pipeline_options import Master, Ui, stages

if TYPE_CHECKING:
    from epicast.experiments.conduct import Conducted

BROKEN, INCOMPLETE = 1, 2


def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="See `epicast experiments`; or your own file.toml.",
            autocompletion=names.experiments,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A smaller variant, for a first look.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where results go. Default: results/NAME.")] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="How many seeds each point runs with.")] = None,
    latency: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help='Another network, like "matrix FILE" with round trips in ms of your own.'),
    ] = None,
    master: Master = None,
    ui: Ui = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run an experiment: play its simulations, check guarantees, measure, and write a report.

    A second call goes on where the first one ended. Exit code 1: a promise was broken; 2: some run is missing.
    """
    from epicast.cli.output import print_json, show

    variant = Variant(quick=quick, seeds=seeds, latency=latency)
    done = _conduct(name, variant, out=out, master=master, ui=ui, quiet=quiet)
    if as_json:
        print_json(as_dict(done))
    else:
        from epicast.cli.run_view import view

        show(view(done))
    if done.broken or done.missing:
        raise typer.Exit(BROKEN if done.broken else INCOMPLETE)


class Variant(NamedTuple):
    """Of an experiment."""

    quick: bool
    seeds: int | None
    latency: str | None


def _conduct(name: str, variant: Variant, *, out: Path | None, master: str | None, ui: bool, quiet: bool) -> Conducted:
    from epicast.cli import runs
    from epicast.experiments import catalog
    from epicast.experiments.conduct import conduct
    from epicast.pipeline.layout import Layout
    from epicast.pipeline.session import session

    experiment = catalog.load(name)
    experiment = experiment.smaller() if variant.quick else experiment
    experiment = experiment.with_seeds(variant.seeds).with_latency(variant.latency)
    evaluate = catalog.evaluate_of(name)
    short = Path(name).stem
    layout = Layout((out or Path("results") / (f"{short}-quick" if variant.quick else short)).resolve()).make()
    with session(master, ui=ui) as spark, stages(quiet=quiet) as stage:
        made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
        return conduct(spark, short, experiment, evaluate, layout, command=runs.command(), made=made, stage=stage)


def as_dict(done: Conducted) -> dict[str, Any]:
    return {
        "experiment": done.name,
        "runs": done.swept.runs,
        "played": done.swept.played,
        "failed": done.missing,
        "failures": [{"run": f.run, "point": f.point, "seed": f.seed, "reason": f.reason} for f in done.swept.failures]
        + [{"run": run, "reason": reason} for run, reason in done.results.unanalysed],
        "report": str(done.report),
        "checks": [
            {"id": c.id, "claim": c.claim, "published": c.published, "measured": c.measured, "verdict": c.verdict}
            | {"reason": c.reason}
            for c in done.evaluation.checks
        ],
        "guarantees": [
            {
                "guarantee": g.guarantee,
                "promised": g.promised,
                "runs_judged": g.runs_judged,
                "checked": g.checked,
                "violations": g.violations,
                "runs_broken": g.runs_broken,
                "examples": list(g.examples),
            }
            for g in done.results.judged
        ],
    }
