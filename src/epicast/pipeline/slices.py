"""The trace of a large run in slices, each small enough for a task.

Much of what is asked of a trace can be asked of each slice apart: which rows are of a kind, or sums that are added up
later. Tasks answer such questions with DuckDB straight from the Parquet files and write the answers as Parquet files:
no row of the trace passes through Spark itself, which would take several times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from epicast.core.errors import EpicastError
from epicast.pipeline.duck import copy_sql, read_sql, reason
from epicast.trace.files import temporary

SLICE_ROWS = 4_000_000
"""Our guess: a second or so of work, so that cores share it well and starting a task does not count."""
MEMORY_MB = 1024


@dataclass(frozen=True)
class Slice:
    """The rows of one file whose numbers are in a range. The ranges of a file leave out nothing."""

    file: str
    from_row: int | None
    to_row: int | None  # exclusive

    def sql(self) -> str:
        bounds = [] if self.from_row is None else [f"row >= {self.from_row}"]
        bounds += [] if self.to_row is None else [f"row < {self.to_row}"]
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        return f"{read_sql([self.file])}{where}"


def slices_of(files: Sequence[Path], rows: int) -> list[Slice]:
    return [part for file in files for part in _slices_of_file(file, rows)]


def _slices_of_file(file: Path, rows: int) -> Iterator[Slice]:
    """Cut between groups of rows, where files keep the numbers of their first and last rows."""
    metadata = pq.read_metadata(file)
    cuts: list[int] = []
    size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(0).statistics
        if size and size + group.num_rows > rows and statistics is not None and statistics.has_min_max:
            cuts.append(statistics.min)
            size = 0
        size += group.num_rows
    bounds = [None, *sorted(set(cuts)), None]
    return (Slice(str(file), *ends) for ends in pairwise(bounds))


def worker(
    slices: Sequence[Slice], tables: Mapping[str, Sequence[str]], sql: str, folder: Path
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with numbers of slices: it writes a file for each."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer(slices[number], tables, sql, folder / f"part-{number:05}.parquet")
            yield batch

    return work


def answer(part: Slice, tables: Mapping[str, Sequence[str]], sql: str, file: Path) -> None:
    """Ask one slice. `tables` are files of other tables that the question names."""
    try:
        with duckdb.connect(":memory:", config={"threads": 1, "memory_limit": f"{MEMORY_MB}MB"}) as db:
            db.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
            db.execute(f"CREATE VIEW events AS {part.sql()}")
            for name, files in tables.items():
                db.execute(f"CREATE VIEW {name} AS {read_sql(files)}")
            db.execute(copy_sql(f"({sql})", temporary(file)))
        temporary(file).replace(file)
    except (duckdb.Error, OSError) as error:
        raise EpicastError(f"cannot analyse {part.file}: {reason(error)}") from None
