"""The three tables of a trace: events, snapshots of overlays, and nodes. This is their one definition.

Numbers are signed and texts are dictionary-encoded, which every reader of Parquet understands. No column of `events` or
`snapshots` is ever null: NOBODY (-1) stands for "no process" and the empty text for "nothing to say".
"""

from __future__ import annotations

import pyarrow as pa

from epicast.core.records import Kind

VERSION = 1
"""Goes up when a column changes its meaning or goes away. A new column alone leaves it."""

KIND_TEXTS = {int(kind): kind.name.lower() for kind in Kind}
TEXT = pa.dictionary(pa.int32(), pa.string())


def _schema(table: str, *columns: pa.Field) -> pa.Schema:
    return pa.schema(columns, {"epicast.table": table, "epicast.version": str(VERSION)})


def _column(name: str, kind: pa.DataType, doc: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable, {"doc": doc})


EVENTS = _schema(
    "events",
    _column("row", pa.int64(), "Position in the trace, from 0. Orders what happened in the same microsecond."),
    _column("time_us", pa.int64(), "When, in microseconds: virtual time of a simulated run, Unix time of a live one."),
    _column("kind", TEXT, "What happened: one of the kinds below."),
    _column("node", pa.int64(), "The process to which it happened."),
    _column("peer", pa.int64(), "The other process, or -1."),
    _column(
        "source",
        pa.int64(),
        "The publisher of the message concerned, or -1. Of `parent` and `repair`: the source of the flow.",
    ),
    _column(
        "seq",
        pa.int64(),
        "The message's number at its publisher, or -1. Of `parent` and `repair`: the number of the flow.",
    ),
    _column("hops", pa.int32(), "Links that the payload has crossed so far."),
    _column("bytes", pa.int32(), "Size of the message on the wire; 0 where none travels."),
    _column(
        "layer",
        TEXT,
        "The role whose message it is: `membership`, `dissemination`, ...; empty where no message travels.",
    ),
    _column("detail", TEXT, "What the kind leaves open: the reason of a drop, the sort of repair."),
    _column("topic", TEXT, "The topic of the message concerned, or empty."),
    _column("flags", pa.int32(), "Bits that qualify the row; 0 when there is nothing to add."),
)

SNAPSHOTS = _schema(
    "snapshots",
    _column("time_us", pa.int64(), "When the picture was taken."),
    _column("overlay", TEXT, "Which graph: `active` for neighbours, `tree` for parents."),
    _column("flow", TEXT, "The flow or topic to which the graph belongs, or empty."),
    _column("node", pa.int64(), "The process that holds the edge: the child in a tree."),
    _column("peer", pa.int64(), "The process that it knows: the parent in a tree."),
    _column("value", pa.int64(), "What the overlay measures on the edge, such as its round trip in us; -1 if nothing."),
)

NODES = _schema(
    "nodes",
    _column("node", pa.int64(), "The number that stands for the process in the other tables."),
    _column("name", pa.string(), "Its name: the endpoint of a live node."),
    _column("area", TEXT, "Where it runs: a data centre or a local network, or empty."),
    _column("joined_us", pa.int64(), "When it came up."),
    _column("ended_us", pa.int64(), "When it ended; null if it was up to the end.", nullable=True),
    _column("how", TEXT, "How it ended: `leave`, `crash`, or empty if it was up to the end."),
)

TABLES = {"events": EVENTS, "snapshots": SNAPSHOTS, "nodes": NODES}


def describe() -> str:
    """All tables and columns as Markdown."""
    parts = [f"Trace schema, version {VERSION}."]
    parts += [_described(name, schema) for name, schema in TABLES.items()]
    parts.append("Kinds: " + ", ".join(f"`{text}`" for text in KIND_TEXTS.values()) + ".")
    return "\n\n".join(parts) + "\n"


def _described(name: str, schema: pa.Schema) -> str:
    lines = [f"### {name}", "", "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| {field.name} | {_type_name(field)} | {field.metadata[b'doc'].decode()} |" for field in schema]
    return "\n".join(lines)


def _type_name(field: pa.Field) -> str:
    return "string" if field.type == TEXT else str(field.type)
