"""`epicast stacks`: what can be run."""

from __future__ import annotations

from typing import Annotated

import typer


def stacks(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """List the named stacks."""
    from epicast.cli.output import console, print_json
    from epicast.stacks import stack

    summaries = stack.summaries()
    if as_json:
        print_json({"stacks": [{"name": name, "summary": summary} for name, summary in summaries.items()]})
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column()
    for name, summary in summaries.items():
        table.add_row(name, summary)
    console().print(table)
