"""The tables that a trace is turned into, as SQL over one run. Each says its grain, its key and an equation that holds.

`deliveries` is computed once and everything about messages is asked of it: joining publications again for every
question is what makes such jobs slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from epicast.core.errors import EpicastError
from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel, RunFacts


@dataclass(frozen=True)
class Table:
    name: str
    grain: str  # what one row is
    key: tuple[str, ...]
    schema: pa.Schema
    sql: str
    wrong: str = ""  # what no row may be
    full_only: bool = False  # needs a trace of every message
    rows: str = ""  # if it has nothing but rows of the trace: which
    made: Literal["view", "define", "gather"] = "define"  # see `Kernel`


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_LONG, _INT, _TEXT, _BOOL = pa.int64(), pa.int32(), pa.string(), pa.bool_()

_TRAVEL = {
    "row": _LONG,
    "time_us": _LONG,
    "node": _LONG,
    "peer": _LONG,
    "source": _LONG,
    "seq": _LONG,
    "hops": _INT,
    "bytes": _INT,
    "layer": _TEXT,
    "message": _TEXT,
    "flags": _INT,
}
_TRAVEL_SQL = "row, time_us, node, peer, source, seq, hops, bytes, layer, detail AS message, flags"

TRAFFIC = ("send", "receive", "duplicate", "drop", "copy", "link_up", "link_down", "deliver")
MARKS = f"""
SELECT row, time_us, kind, node, peer, source, seq, detail, topic FROM events
WHERE kind NOT IN ({", ".join(f"'{kind}'" for kind in TRAFFIC)})
"""
"""The few rows of a trace that are no traffic. They are looked for once: many questions are about them."""

PUBLICATIONS = Table(
    "publications",
    "one row per message that was published",
    ("source", "seq"),
    _schema(source=_LONG, seq=_LONG, topic=_TEXT, published_us=_LONG, row=_LONG),
    "SELECT source, seq, topic, time_us AS published_us, row FROM marks WHERE kind = 'publish'",
)

_SENT, _RECEIVED = "kind = 'send'", "kind IN ('receive', 'duplicate')"

SENDS = Table(
    "sends",
    "one row per message handed to the network",
    ("row",),
    _schema(**_TRAVEL),
    f"SELECT {_TRAVEL_SQL} FROM events WHERE {_SENT}",
    f"bytes <= 0 OR layer = '' OR peer = {NOBODY}",
    full_only=True,
    rows=_SENT,
)

RECEPTIONS = Table(
    "receptions",
    "one row per message that a process received",
    ("row",),
    _schema(**_TRAVEL, duplicate=_BOOL),
    f"SELECT {_TRAVEL_SQL}, kind = 'duplicate' AS duplicate FROM events WHERE {_RECEIVED}",
    f"bytes <= 0 OR layer = '' OR peer = {NOBODY}",
    full_only=True,
    rows=_RECEIVED,
)

DELIVERIES = Table(
    "deliveries",
    "one row per delivery of a message to the application of a process",
    ("row",),
    _schema(
        row=_LONG,
        time_us=_LONG,
        node=_LONG,
        peer=_LONG,
        source=_LONG,
        seq=_LONG,
        topic=_TEXT,
        hops=_INT,
        own=_BOOL,
        published_us=_LONG,  # null: never published, which no sound run has
        latency_us=_LONG,
    ),
    """
    SELECT d.row, d.time_us, d.node, d.peer, d.source, d.seq, d.topic, d.hops, d.node = d.source AS own,
           p.published_us, d.time_us - p.published_us AS latency_us
    FROM (SELECT * FROM events WHERE kind = 'deliver') AS d
    LEFT JOIN publications AS p ON d.source = p.source AND d.seq = p.seq
    """,
    "hops < 0 OR (own AND hops > 0 AND node = peer)",
    made="gather",
)

PARENTS = Table(
    "parents",
    "one row per change of a process's parent in a flow",
    ("row",),
    _schema(
        row=_LONG, time_us=_LONG, node=_LONG, source=_LONG, flow=_LONG, parent=_LONG, previous=_LONG, until_us=_LONG
    ),
    f"""
    SELECT row, time_us, node, source, seq AS flow, peer AS parent,
           COALESCE(LAG(peer) OVER (PARTITION BY node, source, seq ORDER BY row), CAST({NOBODY} AS BIGINT)) AS previous,
           LEAD(time_us) OVER (PARTITION BY node, source, seq ORDER BY row) AS until_us
    FROM marks WHERE kind = 'parent'
    """,
    "node = parent OR until_us < time_us",
)

VIEWS = Table(
    "views",
    "one row per edge of an overlay or a tree in one picture",
    ("time_us", "overlay", "flow", "node", "peer"),
    _schema(time_us=_LONG, overlay=_TEXT, flow=_TEXT, node=_LONG, peer=_LONG, value=_LONG),
    "SELECT time_us, overlay, flow, node, peer, value FROM snapshots",
    f"node = peer OR peer = {NOBODY}",
    made="view",
)

TABLES = (PUBLICATIONS, SENDS, RECEPTIONS, DELIVERIES, PARENTS, VIEWS)
"""In the order in which they are made."""


def tables_of(run: RunFacts) -> tuple[Table, ...]:
    return tuple(table for table in TABLES if run.full or not table.full_only)


def define(kernel: Kernel, run: RunFacts) -> None:
    """Make them known to the kernel, for the questions that follow."""
    made = tables_of(run)
    _check_events(kernel, [table for table in made if table.rows])
    kernel.gather("marks", MARKS)
    for table in made:
        if table.rows:
            kernel.pick(table.name, table.sql)
        else:
            getattr(kernel, table.made)(table.name, table.sql)
            _check(kernel, table)


def write(kernel: Kernel, run: RunFacts, folder_of: Callable[[str], Path]) -> None:
    """Each into its folder."""
    for table in tables_of(run):
        kernel.write(table.name, folder_of(table.name))


def _check_events(kernel: Kernel, picked: Sequence[Table]) -> None:
    """Every row of the trace once: numbers from 0 on, none left out and none twice. And all rows of the tables that
    are nothing but such rows, since all rows are looked at anyway."""
    wrong = [f", count(*) FILTER (WHERE ({table.rows}) AND ({table.wrong})) AS {table.name}" for table in picked]
    kernel.gather(
        "looked_at",
        f"SELECT count(*) AS n, max(row) AS last, sum(CAST(row AS DOUBLE)) AS total{''.join(wrong)} FROM events",
    )
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in ("n", *(table.name for table in picked)))
    found = kernel.query(f"SELECT {sums}, max(last) AS last, sum(total) AS total FROM looked_at").to_pylist()[0]
    count, last, total = found["n"], found["last"], found["total"] or 0
    if (-1 if last is None else last) != count - 1 or not math.isclose(total, count * (count - 1) / 2, rel_tol=1e-12):
        raise EpicastError(f"the trace is damaged: it holds {count} rows, the last is number {last}")
    for table in picked:
        _require_none(found[table.name], "rows contradict themselves", table)


def _check(kernel: Kernel, table: Table) -> None:
    """Raise unless the key is one and the rows make sense. A key that is the trace's row is checked there."""
    if table.wrong:
        wrong = kernel.query(f"SELECT count(*) AS n FROM {table.name} WHERE {table.wrong}")
        _require_none(wrong.column(0)[0].as_py(), "rows contradict themselves", table)
    if table.key != ("row",):
        keys = ", ".join(table.key)
        sql = f"SELECT count(*) AS n FROM (SELECT 1 AS one FROM {table.name} GROUP BY {keys} HAVING count(*) > 1) AS t"
        _require_none(kernel.query(sql).column(0)[0].as_py(), f"keys ({keys}) come more than once", table)


def _require_none(count: int, what: str, table: Table) -> None:
    if count:
        raise EpicastError(f"the trace is damaged: in its table {table.name} {count} {what}")
