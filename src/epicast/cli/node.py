"""`epicast node`: run a node until it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from epicast.cli import live_options as live
from epicast.cli.options import option


def node(
    config: Annotated[Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; options win over it.")] = None,
    listen: live.Listen = None,
    advertise: live.Advertise = None,
    seed: live.Seed = None,
    lan: live.Lan = False,
    cluster: live.ClusterName = None,
    stack: live.StackName = None,
    order: live.Order = None,
    settings: live.Set = None,
    timeout: Annotated[
        float | None,
        option("Cluster", "SECONDS", "Give up if nobody lets us in within so long. Default: keep trying.", min=0.1),
    ] = None,
    area: Annotated[
        str | None, option("Cluster", "NAME", "Where the node is, like eu/paris; some stacks prefer near neighbours.")
    ] = None,
    far_delay: Annotated[
        str | None, option("Cluster", "TIME", "Hold back what goes to other areas, like 50ms: tries long distances.")
    ] = None,
    keys: live.Keys = None,
    name: live.Name = None,
    sign: live.Sign = False,
    insecure: live.Insecure = False,
    admin: Annotated[
        str | None, option("Output", "ADDRESS", 'Of the pages for operators, or "off". Default: 127.0.0.1:0.')
    ] = None,
    admin_public: Annotated[
        bool, option("Output", None, "Let others than this machine see the pages.", "--admin-public")
    ] = False,
    trace: Annotated[Path | None, option("Output", "FOLDER", "Write down what happens; see `epicast check`.")] = None,
    trace_level: Annotated[
        str | None, option("Output", "LEVEL", "deliveries, or full: every message sent and received as well.")
    ] = None,
    log: Annotated[str | None, option("Output", "FORM", "On stderr: text or json.")] = None,
    as_json: live.Json = False,
    orders: Annotated[bool, typer.Option("--orders", hidden=True)] = False,
) -> None:
    """Run a node: it joins the cluster of its seeds, or is the first of one, and relays what others publish.

    Without seeds a node is the first at once; one that is among its own seeds, once no other process was heard for 5 s.
    The first line on stdout is its address and that of its admin pages. Ctrl-C and SIGTERM let it leave in good order.
    """
    from epicast.cli.settings import node_settings
    from epicast.live.logs import log_to_stderr
    from epicast.live.running import run
    from epicast.live.serve import serve
    from epicast.live.settings import Settings

    flags = live.node_flags(listen, seed, cluster, stack, keys, name, order, lan=lan, sign=sign, insecure=insecure) | {
        "advertise": advertise,
        "admin": admin,
        "admin_public": admin_public or None,
        "trace": live.text(trace),
        "trace_level": trace_level,
        "area": area,
        "limits": None if far_delay is None else {"far_delay_us": far_delay},
        "log": log,
    }
    told = Settings.read(config, flags, node_settings(settings or ()))
    log_to_stderr(told.log)
    run(serve(told, lambda found: _tell(found, as_json=as_json), orders=orders, join_s=timeout))


def _tell(found: dict[str, Any], *, as_json: bool) -> None:
    """One line, whoever reads it."""
    import json

    if as_json:
        line = json.dumps(found)
    else:
        line = found["address"] if found["admin"] is None else f"{found['address']} admin http://{found['admin']}"
    print(line, flush=True)
