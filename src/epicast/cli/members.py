"""`epicast members`: whom a node knows."""

from __future__ import annotations

from epicast.cli.live_options import Admin, Json


def members(admin: Admin, as_json: Json = False) -> None:
    """List the processes that a node knows: its neighbours, and those that could become neighbours."""
    from epicast.cli.output import console, print_json
    from epicast.live.pages import fetch_status

    status = fetch_status(admin)
    if as_json:
        keys = ("id", "cluster", "joined", "neighbours", "known")
        print_json({key: status[key] for key in keys})
        return
    from epicast.cli.top_view import members_view

    console().print(members_view(status))
