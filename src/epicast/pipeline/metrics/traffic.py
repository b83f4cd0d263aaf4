"""What travelled: messages and bytes by layer, and how the load is spread over the processes.

Totals are of the whole run and of all processes. Loads are what a process that stays sent (upload) and received
(download) in the window: the same time for all, so that they can be compared. *Payload* is what carries a published
event, *control* all the rest.
"""

from __future__ import annotations

import math
from typing import Any

from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.distributions import MANY, Distribution
from epicast.pipeline.metrics.measures import LAYERS, OTHER, layer_name, ratio
from epicast.pipeline.metrics.scope import Scope, stays_sql

_WAYS = {"sent": ("send",), "received": ("receive", "duplicate"), "dropped": ("drop",)}
_LOADS = ("upload_bytes", "upload_payload_bytes", "download_bytes", "download_payload_bytes")
_RATES = (*_LOADS, "upload_messages", "download_messages")

NAMES = {
    **{f"{way}_messages": f"messages {way}, of the whole run" for way in _WAYS},
    **{f"{way}_bytes": f"bytes {way}, of the whole run" for way in _WAYS},
    **{f"{way}_payload_messages": f"messages with a payload {way}, of the whole run" for way in _WAYS},
    **{f"{way}_payload_bytes": f"bytes of messages with a payload {way}, of the whole run" for way in _WAYS},
    **{
        f"{way}_{what}_{layer}": f"{what} {way} by the layer {layer}, of the whole run"
        for way in ("sent", "received")
        for what in ("messages", "bytes")
        for layer in (*LAYERS, OTHER)
    },
    "copied_messages": "second copies that the network made by itself",
    "control_bytes_share": "share of the bytes sent that are not of messages with a payload",
    "redundancy": "receptions of payloads for each delivery that is not the publisher's own, less 1",
    "arrived_bytes_share": "bytes received divided by bytes sent",
    "arrived_payload_bytes_share": "bytes of messages with a payload received divided by those sent",
    **{
        f"{load}_per_second": f"mean {load.replace('_', ' ')} of a process that stays, in a second of the window"
        for load in _RATES
    },
    "upload_children_correlation": (
        "correlation (Pearson) of the payload bytes that a process that stays sent in the window with the number of "
        "its children in the last picture of the trees"
    ),
}

DISTRIBUTIONS = tuple(
    Distribution(
        load,
        f"bytes {'of messages with a payload ' if 'payload' in load else ''}that a process that stays "
        f"{'sent' if load.startswith('upload') else 'received'} in the window",
        statistics=MANY,
    )
    for load in _LOADS
)


def define(kernel: Kernel, scope: Scope) -> None:
    kernel.define("measured_loads", _loads_sql(scope))


def _loads_sql(scope: Scope) -> str:
    """Grain: one row per process that stays, those without any traffic included."""

    def total(column: str, kinds: tuple[str, ...], name: str, condition: str = "true") -> str:
        named = ", ".join(f"'{kind}'" for kind in kinds)
        return f"CAST(COALESCE(sum({column}) FILTER (WHERE kind IN ({named}) AND {condition}), 0) AS BIGINT) AS {name}"

    columns = []
    for way, kinds in (("upload", _WAYS["sent"]), ("download", _WAYS["received"])):
        columns += [
            total("window_bytes", kinds, f"{way}_bytes"),
            total("window_bytes", kinds, f"{way}_payload_bytes", "payload"),
            total("window_times", kinds, f"{way}_messages"),
        ]
    return f"""
        SELECT n.node, {", ".join(columns)}
        FROM nodes AS n LEFT JOIN measured_tally AS t ON n.node = t.node
        WHERE {stays_sql(scope.window_us[0], "n")} GROUP BY n.node
    """


def counts() -> dict[Distribution, str]:
    return {each: f"SELECT {each.name} AS amount, 1 AS times FROM measured_loads" for each in DISTRIBUTIONS}


def metrics(kernel: Kernel, scope: Scope) -> dict[str, float]:
    found = _totals(scope) | _rates(kernel, scope)
    for what in ("", "payload_"):
        found |= ratio(f"arrived_{what}bytes_share", found[f"received_{what}bytes"], found[f"sent_{what}bytes"])
    control_bytes = found["sent_bytes"] - found["sent_payload_bytes"]
    found |= ratio("control_bytes_share", control_bytes, found["sent_bytes"])
    others = scope.count("deliver") - scope.count("publish")
    found |= ratio("redundancy", found["received_payload_messages"] - others, others)
    return found


def _totals(scope: Scope) -> dict[str, float]:
    found: dict[str, float] = {"copied_messages": scope.count("copy")}
    for way, kinds in _WAYS.items():
        for column, what in (("times", "messages"), ("bytes", "bytes")):
            rows = [row for row in scope.totals if row["kind"] in kinds]
            found[f"{way}_{what}"] = sum(row[column] for row in rows)
            found[f"{way}_payload_{what}"] = sum(row[column] for row in rows if row["payload"])
            if way != "dropped":
                found |= _by_layer(f"{way}_{what}", rows, column)
    return found


def _by_layer(name: str, rows: list[dict[str, Any]], column: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows:
        key = f"{name}_{layer_name(row['layer'])}"
        found[key] = found.get(key, 0) + row[column]
    return found


def _rates(kernel: Kernel, scope: Scope) -> dict[str, float]:
    sums = ", ".join(f"CAST(COALESCE(sum({load}), 0) AS BIGINT) AS {load}" for load in _RATES)
    row = kernel.query(f"SELECT count(*) AS processes, {sums} FROM measured_loads").to_pylist()[0]
    over = row["processes"] * scope.window_s
    return {name: value for load in _RATES for name, value in ratio(f"{load}_per_second", row[load], over).items()}


def children_correlation(kernel: Kernel, picture_us: int) -> dict[str, float]:
    """Of the load of those who stay with their number of children, over all trees, at the time of the picture."""
    row = kernel.query(_MOMENTS.format(picture_us=picture_us)).to_pylist()[0]
    scale = math.sqrt((row["xx"] or 0) * (row["yy"] or 0))
    return ratio("upload_children_correlation", row["xy"] or 0, scale)


_MOMENTS = """
    SELECT sum((x - x_mean) * (x - x_mean)) AS xx, sum((y - y_mean) * (y - y_mean)) AS yy,
           sum((x - x_mean) * (y - y_mean)) AS xy
    FROM (SELECT x, y, avg(x) OVER () AS x_mean, avg(y) OVER () AS y_mean
          FROM (SELECT CAST(l.upload_payload_bytes AS DOUBLE) AS x, CAST(COALESCE(c.children, 0) AS DOUBLE) AS y
                FROM measured_loads AS l
                LEFT JOIN (SELECT peer AS node, count(*) AS children
                           FROM (SELECT DISTINCT flow, node, peer FROM snapshots
                                 WHERE overlay = 'tree' AND time_us = {picture_us}) AS edges
                           GROUP BY peer) AS c
                       ON l.node = c.node) AS pairs) AS centred
"""
