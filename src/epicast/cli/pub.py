"""`epicast pub`: publish a message, or every line of stdin."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from epicast.cli import live_options as live
from epicast.cli.options import option


def pub(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Like prices/eur.")],
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="Without it, every line of stdin is a message.")
    ] = None,
    whole: Annotated[bool, option("Message", None, "All of stdin is one message.", "--whole")] = False,
    header: Annotated[list[str] | None, option("Message", "NAME=TEXT", "Goes with the messages; repeat it.")] = None,
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
    as_json: Annotated[bool, option("Output", None, "Print a JSON object for each message.", "--json")] = False,
) -> None:
    """Publish a message, or every line of stdin: join, publish, leave when all is sent."""
    from epicast.core.errors import EpicastError
    from epicast.live import pubsub
    from epicast.live.running import run
    from epicast.live.settings import Settings

    if message is not None and whole:
        raise EpicastError("--whole is for stdin: leave it or MESSAGE out")
    flags = live.node_flags(listen, seed, cluster, stack, keys, name, order, lan=lan, sign=sign, insecure=insecure)
    sys.stdout.flush()  # what follows is written past it
    done = run(
        pubsub.publish(
            Settings.read(None, flags),
            topic,
            None if message is None else message.encode("utf-8", "surrogateescape"),
            headers=live.pairs("--header", header or (), "name=text, like unit=usd"),
            whole=whole,
            receipts=as_json,
            join_s=timeout,
        )
    )
    if done is None:
        raise KeyboardInterrupt
