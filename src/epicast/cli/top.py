"""`epicast top`: what the nodes of a cluster do right now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from epicast.cli.options import option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epicast.cli.cluster_rows import ClusterLook

Admins = Annotated[
    list[str],
    option(
        "Cluster",
        "ADDRESS",
        "What `epicast node` prints as its admin address, or @FILE with one a line; repeat it to see more nodes.",
        "--admin",
    ),
]
AdminPort = Annotated[
    int | None,
    option("Cluster", "PORT", "Ask every process that these know at this port of its host, too.", min=1, max=65535),
]
ROWS_MAX = 1000  # where no terminal sets a limit
LINES_KEPT = 6  # of a terminal, for headings


def top(
    admin: Admins,
    admin_port: AdminPort = None,
    once: Annotated[bool, typer.Option("--once", help="Print one table and end.")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="Between two looks.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and end.")] = False,
) -> None:
    """Show the processes of a cluster, again and again until Ctrl-C: neighbours, rates, who is behind, what was lost.

    Nodes whose admin pages are asked tell all of it; of the processes that they know, they tell what they see. With one
    admin address the queues, trees and subscriptions of that node follow. Without a terminal it prints once and ends.
    """
    from time import sleep

    from epicast.cli.output import console, print_json

    before = _look(admin, admin_port)
    sleep(interval)
    now = _look(admin, admin_port)
    if as_json:
        print_json(as_dict(before, now))
        return
    if once or not sys.stdout.isatty():
        console().print(_view(before, now, ROWS_MAX))
        return
    from rich.live import Live

    try:
        with Live(console=console(), screen=True, auto_refresh=False) as live:
            while True:
                rows_max = max(1, live.console.height - LINES_KEPT)
                live.update(_view(before, now, rows_max), refresh=True)
                sleep(interval)
                before, now = now, _look(admin, admin_port)
    except KeyboardInterrupt:  # the way to end it
        return


def as_dict(before: ClusterLook, now: ClusterLook) -> dict[str, object]:
    """`processes` is the table; `nodes` is all that each node that was asked tells of itself, with its rates."""
    from epicast.cli.cluster_rows import rows_of
    from epicast.cli.top_view import rates

    nodes = [
        {**look.status, "rates": rates(before.nodes.get(process, look), look)} for process, look in now.nodes.items()
    ]
    return {"processes": [row.as_dict() for row in rows_of(before, now)], "nodes": nodes}


def _look(admins: list[str], port: int | None) -> ClusterLook:
    from epicast.cli.cluster_rows import ClusterLook
    from epicast.cli.top_view import Look
    from epicast.live.pages import fetch_statuses

    told, silent = fetch_statuses(admins, port)
    return ClusterLook({status["id"]: Look(status) for status in told}, silent)


def _view(before: ClusterLook, now: ClusterLook, rows_max: int) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding

    from epicast.cli.cluster_rows import rows_of
    from epicast.cli.cluster_table import cluster_table, title
    from epicast.cli.top_view import top_view

    rows = rows_of(before, now)
    cluster = next(iter(now.nodes.values())).status["cluster"]
    parts: list[RenderableType] = [title(cluster, rows), Padding(cluster_table(rows, rows_max), (1, 0, 0, 1))]
    if len(now.nodes) == 1 and not now.silent:
        (look,) = now.nodes.values()
        parts.append(Padding(top_view(before.nodes.get(look.status["id"], look), look), (1, 0, 0, 0)))
    return Group(*parts)
