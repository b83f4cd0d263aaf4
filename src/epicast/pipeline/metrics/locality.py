"""How much comes from near and how much from far (see `places.py`), at the processes that receive it.

Sums are of the whole run. What is said of a process is said of those that stay and have a label. An *advertisement*
offers a message without its payload.
"""

from __future__ import annotations

from typing import Any

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.distributions import MANY, Distribution
from epicast.pipeline.metrics.measures import ratio
from epicast.pipeline.metrics.places import DISTANCES, WHERE, at_distance, distance_sql
from epicast.pipeline.metrics.scope import Scope, stays_sql

ADVERTISEMENTS = ("IHave",)
"""The messages that are one, by the names that traces give them."""

_SUMS = {
    "payload_bytes": "bytes of messages with a payload",
    "control_bytes": "bytes of messages without a payload, of all layers,",
    "advertisements": "advertisements",
    "signals": "messages of the dissemination without a payload: advertisements, requests and all else",
}
_EACH = {
    "copies": "payloads",
    "duplicates": "payloads that were not new",
    "advertisements": "advertisements",
}
NAMES = {
    **{
        f"{where}_{name}": f"{what} received from {words}, of the whole run"
        for where, words in WHERE.items()
        for name, what in _SUMS.items()
    },
    **{
        f"{where}_{name}_per_message": f"{what} received from {words} for each message, over all processes"
        for where, words in WHERE.items()
        for name, what in _EACH.items()
    },
    "far_payload_bytes_share": "share of the bytes of messages with a payload that came from another area",
    **{
        f"copies_per_message_at_{distance}": (
            f"payloads received from processes at {at_distance(distance)} for each message, over all processes"
        )
        for distance in DISTANCES
    },
}

DISTRIBUTIONS = tuple(
    Distribution(
        f"{where}_{name}", f"{_EACH[name]} that a process that stays received from {words}", statistics=MANY[:-1]
    )
    for where, words in WHERE.items()
    for name in ("copies", "advertisements")
)

_COLUMNS = ("copies", "duplicates", "advertisements", "signals", "payload_bytes", "control_bytes")


def _arrivals_sql() -> str:
    """Grain: one row per slice of the trace, receiver and sender."""
    advertised = ", ".join(f"'{name}'" for name in ADVERTISEMENTS)
    return f"""
        SELECT node, peer, count(*) FILTER (WHERE payload) AS copies,
               count(*) FILTER (WHERE payload AND kind = 'duplicate') AS duplicates,
               count(*) FILTER (WHERE NOT payload AND detail IN ({advertised})) AS advertisements,
               count(*) FILTER (WHERE NOT payload AND layer = 'dissemination') AS signals,
               CAST(COALESCE(sum(bytes) FILTER (WHERE payload), 0) AS BIGINT) AS payload_bytes,
               CAST(COALESCE(sum(bytes) FILTER (WHERE NOT payload), 0) AS BIGINT) AS control_bytes
        FROM (SELECT node, peer, kind, layer, detail, source <> {NOBODY} AS payload, CAST(bytes AS BIGINT) AS bytes
              FROM events WHERE kind IN ('receive', 'duplicate')) AS received
        GROUP BY node, peer
    """


def define(kernel: Kernel) -> None:
    """`measured_ways` has one row per receiver and distance; `measured_places` is known. Senders are counted before
    anyone asks where they are: there are few of them for each process, however many messages."""
    kernel.gather("measured_arrivals", _arrivals_sql())
    sums = ", ".join(f"CAST(sum(m.{column}) AS BIGINT) AS {column}" for column in _COLUMNS)
    kernel.define(
        "measured_ways",
        f"""
        SELECT node, distance, {sums}
        FROM (SELECT m.*, {distance_sql("a", "b")} AS distance
              FROM measured_arrivals AS m
              JOIN measured_places AS a ON m.node = a.node JOIN measured_places AS b ON m.peer = b.node) AS m
        GROUP BY node, distance
        """,
    )


def metrics(kernel: Kernel, scope: Scope) -> dict[str, float]:
    sums = ", ".join(f"CAST(sum({column}) AS BIGINT) AS {column}" for column in _COLUMNS)
    rows = kernel.query(f"SELECT distance, {sums} FROM measured_ways GROUP BY distance").to_pylist()
    total = {where: _total(rows, far=where == "far") for where in WHERE}
    messages = scope.count("publish")
    found: dict[str, float] = {f"{where}_{name}": total[where][name] for where in WHERE for name in _SUMS}
    for where in WHERE:
        for name in _EACH:
            found |= ratio(f"{where}_{name}_per_message", total[where][name], messages)
    for row in rows:
        found |= ratio(f"copies_per_message_at_{row['distance']}", row["copies"], messages)
    everything = total["near"]["payload_bytes"] + total["far"]["payload_bytes"]
    return found | ratio("far_payload_bytes_share", total["far"]["payload_bytes"], everything)


def _total(rows: list[dict[str, Any]], *, far: bool) -> dict[str, int]:
    return {column: sum(row[column] for row in rows if (row["distance"] > 0) == far) for column in _COLUMNS}


def counts(scope: Scope) -> dict[Distribution, str]:
    """Processes to which nothing came are counted too."""
    found = {}
    for each in DISTRIBUTIONS:
        where, name = each.name.split("_")
        found[each] = f"""
            SELECT COALESCE(sum(w.{name}) FILTER (WHERE w.distance {"=" if where == "near" else ">"} 0), 0) AS amount,
                   1 AS times
            FROM measured_places AS p LEFT JOIN measured_ways AS w ON p.node = w.node
            WHERE {stays_sql(scope.window_us[0], "p")} GROUP BY p.node
        """
    return found
