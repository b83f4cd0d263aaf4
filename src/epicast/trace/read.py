"""The tables of a run in memory, for tests and small analyses. Spark reads the same files where they are large."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from epicast.core.errors import EpicastError
from epicast.trace.files import one_line
from epicast.trace.run import RunFolder
from epicast.trace.schema import EVENTS, NODES, SNAPSHOTS


def read_events(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """What happened, in order. An incomplete run gives the rows that were saved."""
    return _read(RunFolder.open(path).event_files(), EVENTS, columns)


def read_snapshots(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    return _read([RunFolder.open(path).snapshots_file], SNAPSHOTS, columns)


def read_nodes(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    return _read([RunFolder.open(path).nodes_file], NODES, columns)


def _read(files: Sequence[Path], schema: pa.Schema, columns: Sequence[str] | None) -> pa.Table:
    for name in columns or ():
        if name not in schema.names:
            raise EpicastError(f"no column {name}: there are {', '.join(schema.names)}")
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns], schema.metadata)
    try:
        tables = [pq.read_table(file, columns=wanted.names, partitioning=None) for file in files if file.exists()]
    except (OSError, pa.ArrowException) as error:
        raise EpicastError(f"cannot read the trace: {one_line(error)}") from None
    return pa.concat_tables([wanted.empty_table(), *tables]).unify_dictionaries()
