"""`epicast sub`: print messages as they come."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from epicast.cli import live_options as live
from epicast.cli.options import option

TOO_FEW = 1


def sub(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Like prices/*; ** stands for any levels.")],
    count: Annotated[int | None, option("Messages", "N", "End after so many.", min=1)] = None,
    seconds: Annotated[float | None, option("Messages", "S", "End after so long.", min=0.1)] = None,
    policy: Annotated[
        str,
        option("Messages", "NAME", "When this subscriber falls behind: block, drop-oldest, drop-newest or disconnect."),
    ] = "drop-oldest",
    as_they_come: Annotated[
        bool, option("Messages", None, "Do not wait for the order of the topic.", "--as-they-come")
    ] = False,
    seed: live.Seed = None,
    lan: live.Lan = False,
    cluster: live.ClusterName = None,
    stack: live.StackName = None,
    order: live.Order = None,
    listen: live.Listen = None,
    timeout: live.Join = live.JOIN_S,
    keys: live.Keys = None,
    name: live.Name = None,
    sign: live.Sign = False,
    insecure: live.Insecure = False,
    topics: Annotated[
        bool | None,
        option(
            "Output",
            None,
            "Print the topic before each payload. Default: where PATTERN has wildcards.",
            "--topic/--no-topic",
        ),
    ] = None,
    as_json: Annotated[bool, option("Output", None, "Print a JSON object for each message and gap.", "--json")] = False,
    quiet: live.Quiet = False,
) -> None:
    """Print the messages of a topic, or of all topics that match a pattern, one a line.

    Where the pattern has wildcards, each line begins with the topic of the message and a blank.
    Where messages are missing, stderr says so. With --count and --seconds, the exit code is 1 if there were too few.
    """
    from typing import Any, cast

    from epicast.cli.output import note
    from epicast.live import pubsub
    from epicast.live.running import run
    from epicast.live.settings import Settings

    flags = live.node_flags(listen, seed, cluster, stack, keys, name, order, lan=lan, sign=sign, insecure=insecure)
    sys.stdout.flush()  # what follows is written past it
    printed = run(
        pubsub.subscribe(
            Settings.read(None, flags),
            pattern,
            policy=cast(Any, policy),
            order="none" if as_they_come else None,
            count=count,
            as_json=as_json,
            topics=topics,
            seconds=seconds,
            join_s=timeout,
            note=(lambda text: None) if quiet else note,
        )
    )
    if count is not None and printed < count:
        if not quiet:
            note(f"{printed:,} of {count:,} messages came")
        raise typer.Exit(TOO_FEW)
