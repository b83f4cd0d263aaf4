"""The options that the commands with a live node have in common: whom to meet, and with which keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from epicast.cli import completion as names
from epicast.cli.options import option

JOIN_S = 30.0


Seed = Annotated[
    list[str] | None, option("Cluster", "ADDRESS", "A node that is there already, or @FILE with one a line; repeat it.")
]
Lan = Annotated[bool, option("Cluster", None, "Find others on the local network.", "--lan")]
ClusterName = Annotated[
    str | None,
    option("Cluster", "NAME", "Nodes of other clusters are refused. Default: of the keys, or epicast.", "--cluster"),
]
StackName = Annotated[
    str | None,
    option(
        "Cluster",
        "NAME",
        "See `epicast stacks`; or a stack's TOML file. Default: brisa.",
        "--stack",
        autocompletion=names.stacks,
    ),
]
Order = Annotated[
    list[str] | None,
    option("Cluster", "ORDER", "Of all topics: fifo, causal or total; or PATTERN=ORDER, repeated. Alike on all nodes."),
]
Set = Annotated[
    list[str] | None,
    option(
        "Cluster",
        "NAME=VALUE",
        "Of the stack's roles (membership.active_size=5), of an order (total.balls.period=100ms) or a limit"
        " (limits.stall=3s); repeat it.",
        "--set",
    ),
]
Listen = Annotated[
    str | None, option("Cluster", "ADDRESS", "Default: a free port, at the address from which the seed is reached.")
]
Advertise = Annotated[
    str | None, option("Cluster", "ADDRESS", "Where others reach this node, if it is not where it listens.")
]
Keys = Annotated[Path | None, option("Security", "FOLDER", "As `epicast keys issue` left it.")]
Name = Annotated[str | None, option("Security", "NAME", "Of the certificate in the folder of keys.")]
Sign = Annotated[bool, option("Security", None, "Publish signed messages and accept no others.", "--sign")]
Insecure = Annotated[bool, option("Security", None, "Listen beyond this machine without keys.", "--insecure")]
Join = Annotated[
    float, option("Cluster", "SECONDS", "Give up if nobody lets us in within so long.", "--timeout", min=0.1)
]
Admin = Annotated[str, typer.Option(metavar="ADDRESS", help="What `epicast node` prints as its admin address.")]
Json = Annotated[bool, option("Output", None, "Print JSON.", "--json")]
Quiet = Annotated[bool, option("Output", None, "Say nothing on stderr but errors.", "--quiet", "-q")]


def node_flags(
    listen: str | None,
    seeds: list[str] | None,
    cluster: str | None,
    stack: str | None,
    keys: Path | None,
    name: str | None,
    order: list[str] | None = None,
    *,
    lan: bool,
    sign: bool,
    insecure: bool,
) -> dict[str, Any]:
    """The settings that the options above give; None where nothing was said."""
    return {
        "listen": listen,
        "seeds": seeds or None,
        "lan": lan or None,
        "cluster": cluster,
        "stack": _stack(stack),
        "order": orders_from(order),
        "keys": text(keys),
        "name": name,
        "sign": sign or None,
        "insecure": insecure or None,
    }


def _stack(stack: str | None) -> Any:
    from epicast.cli.settings import stack_from

    return None if stack is None else stack_from(stack)


def orders_from(given: list[str] | None) -> str | dict[str, str] | None:
    """`total` is for all topics, `ledger/**=total` for those that match."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return pairs("--order", given, "PATTERN=ORDER, like ledger/**=total, or one order for all")


def pairs(flag: str, given: Sequence[str], expected: str) -> dict[str, str]:
    """Of an option that is repeated."""
    from epicast.core.errors import EpicastError

    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise EpicastError(f"{flag} {text}: expected {expected}")
        found[name] = value
    return found


def text(path: Path | None) -> str | None:
    return None if path is None else str(path)
