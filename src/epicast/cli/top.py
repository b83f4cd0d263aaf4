"""`epicast top`: what a node does right now."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from epicast.cli.live_options import Admin


def top(
    admin: Admin,
    once: Annotated[bool, typer.Option("--once", help="Print one table and end.")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="Between two looks.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and end.")] = False,
) -> None:
    """Show rates, queues, neighbours and places in trees of a node, again and again until Ctrl-C.

    Without a terminal it prints one table and ends.
    """
    from time import sleep

    from epicast.cli.output import console, print_json
    from epicast.cli.top_view import Look, rates, top_view
    from epicast.live.pages import fetch_status

    before = Look(fetch_status(admin))
    sleep(interval)
    now = Look(fetch_status(admin))
    if as_json:
        print_json({**now.status, "rates": rates(before, now)})
        return
    if once or not sys.stdout.isatty():
        console().print(top_view(before, now))
        return
    from rich.live import Live

    try:
        with Live(top_view(before, now), console=console(), screen=True, auto_refresh=False) as live:
            while True:
                sleep(interval)
                before, now = now, Look(fetch_status(admin))
                live.update(top_view(before, now), refresh=True)
    except KeyboardInterrupt:  # the way to end it
        return
