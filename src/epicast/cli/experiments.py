"""`epicast experiments`: what can be run, which figure it answers and how long it takes."""

from __future__ import annotations

from typing import Annotated

import typer


def experiments(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """List the experiments that come with epicast."""
    from epicast.cli.output import console, print_json
    from epicast.experiments import catalog

    known = {name: catalog.load(name) for name in catalog.names()}
    if as_json:
        rows = [
            {
                "name": name,
                "title": each.title,
                "answers": each.answers,
                "runs": len(each),
                "minutes": each.minutes,
                "quick_minutes": each.smaller().minutes,
            }
            for name, each in known.items()
        ]
        print_json({"experiments": rows})
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("experiment", style="bold cyan", no_wrap=True)
    for heading in ("what", "answers"):
        table.add_column(heading)
    for heading in ("runs", "minutes", "quick"):
        table.add_column(heading, justify="right")
    for name, each in known.items():
        table.add_row(
            name, each.title, each.answers, f"{len(each):,}", f"{each.minutes:g}", f"{each.smaller().minutes:g}"
        )
    console().print(table)
