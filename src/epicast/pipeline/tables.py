"""The tables that a trace is turned into, as SQL over one run. Each says its grain, its key and an equation that holds.

`deliveries` is computed once and everything about messages is asked of it: joining publications again for every
question is what makes such jobs slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
    wrong: str = ""  # counts rows that cannot be, as `SELECT count(*) ...`
    full_only: bool = False  # needs a trace of every message
    kept: bool = True  # computed once; the others are as large as the trace, and are read from it


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

PUBLICATIONS = Table(
    "publications",
    "one row per message that was published",
    ("source", "seq"),
    _schema(source=_LONG, seq=_LONG, topic=_TEXT, published_us=_LONG, row=_LONG),
    "SELECT source, seq, topic, time_us AS published_us, row FROM events WHERE kind = 'publish'",
)

SENDS = Table(
    "sends",
    "one row per message handed to the network",
    ("row",),
    _schema(**_TRAVEL),
    f"SELECT {_TRAVEL_SQL} FROM events WHERE kind = 'send'",
    f"SELECT count(*) FROM sends WHERE bytes <= 0 OR layer = '' OR peer = {NOBODY}",
    full_only=True,
    kept=False,
)

RECEPTIONS = Table(
    "receptions",
    "one row per message that a process received",
    ("row",),
    _schema(**_TRAVEL, duplicate=_BOOL),
    f"SELECT {_TRAVEL_SQL}, kind = 'duplicate' AS duplicate FROM events WHERE kind IN ('receive', 'duplicate')",
    f"SELECT count(*) FROM receptions WHERE bytes <= 0 OR layer = '' OR peer = {NOBODY}",
    full_only=True,
    kept=False,
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
    "SELECT count(*) FROM deliveries WHERE hops < 0 OR (own AND hops > 0 AND node = peer)",
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
    FROM events WHERE kind = 'parent'
    """,
    "SELECT count(*) FROM parents WHERE node = parent OR until_us < time_us",
)

VIEWS = Table(
    "views",
    "one row per edge of an overlay or a tree in one picture",
    ("time_us", "overlay", "flow", "node", "peer"),
    _schema(time_us=_LONG, overlay=_TEXT, flow=_TEXT, node=_LONG, peer=_LONG, value=_LONG),
    "SELECT time_us, overlay, flow, node, peer, value FROM snapshots",
    f"SELECT count(*) FROM views WHERE node = peer OR peer = {NOBODY}",
    kept=False,
)

TABLES = (PUBLICATIONS, SENDS, RECEPTIONS, DELIVERIES, PARENTS, VIEWS)
"""In the order in which they are made."""


def tables_of(run: RunFacts) -> tuple[Table, ...]:
    return tuple(table for table in TABLES if run.full or not table.full_only)


def define(kernel: Kernel, run: RunFacts) -> None:
    """Make them known to the kernel, for the questions that follow."""
    _check_events(kernel)
    for table in tables_of(run):
        (kernel.define if table.kept else kernel.view)(table.name, table.sql)
        _check(kernel, table)


def write(kernel: Kernel, run: RunFacts, folder_of: Callable[[str], Path]) -> None:
    """Each into its folder."""
    for table in tables_of(run):
        kernel.write(table.name, folder_of(table.name))


def _check_events(kernel: Kernel) -> None:
    """Every row of the trace once: numbers from 0 on, none left out and none twice."""
    sql = """
        SELECT count(*) AS n, COALESCE(max(row), -1) AS last, COALESCE(sum(CAST(row AS DOUBLE)), 0) AS total
        FROM events
    """
    count, last, total = (column[0].as_py() for column in kernel.query(sql).columns)
    if last != count - 1 or not math.isclose(total, count * (count - 1) / 2, rel_tol=1e-12):
        raise EpicastError(f"the trace is damaged: it holds {count} rows, the last is number {last}")


def _check(kernel: Kernel, table: Table) -> None:
    """Raise unless the key is one and the rows make sense. A key that is the trace's row is checked there."""
    questions = {"rows contradict themselves": table.wrong} if table.wrong else {}
    if table.key != ("row",):
        keys = ", ".join(table.key)
        sql = f"SELECT count(*) AS n FROM (SELECT 1 AS one FROM {table.name} GROUP BY {keys} HAVING count(*) > 1) AS t"
        questions[f"keys ({keys}) come more than once"] = sql
    for what, sql in questions.items():
        count = kernel.query(sql).column(0)[0].as_py()
        if count:
            raise EpicastError(f"the trace is damaged: in its table {table.name} {count} {what}")
