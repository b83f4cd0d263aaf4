"""`epicast demo`: the whole way from simulations to a report, in small."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epicast.cli.pipeline_options import Master, Ui


def demo(
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where results go.")] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="How many seeds each stack runs with.")] = None,
    master: Master = None,
    ui: Ui = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare flooding with a BRISA tree under churn: many runs on Spark, checked guarantees, a report with figures.

    The same as `epicast run demo`. For a comparison of single runs without Spark, see `epicast compare`.
    """
    from epicast.cli.run import run

    run("demo", out=out, seeds=seeds, master=master, ui=ui, as_json=as_json, quiet=quiet)
