"""The kernel for a run that fits into a task: DuckDB in the task's own process, on one thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from epicast.core.errors import EpicastError
from epicast.trace.files import one_line, temporary
from epicast.trace.run import RunFolder

TABLE_FILE = "part-0.parquet"

T = TypeVar("T")


class DuckKernel:
    def __init__(self, run: RunFolder, *, threads: int = 1, memory_mb: int = 2048, spill: Path | None = None) -> None:
        settings: dict[str, Any] = {"threads": threads, "memory_limit": f"{memory_mb}MB"}
        if spill is not None:
            spill.parent.mkdir(parents=True, exist_ok=True)  # DuckDB makes the last folder of a path only
            settings["temp_directory"] = str(spill)
        self._run = run
        self._db = duckdb.connect(":memory:", config=settings)
        self._db.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        for name, files in (
            ("events", run.event_files()),
            ("nodes", [run.nodes_file]),
            ("snapshots", [run.snapshots_file]),
        ):
            self._open(name, files)

    def _open(self, name: str, files: Sequence[Path]) -> None:
        if not files:
            raise EpicastError(f"{self._run.path} holds no {name}: run it again")
        self._ask(f"CREATE VIEW {name} AS {read_sql(files)}")

    def view(self, name: str, sql: str) -> None:
        self._ask(f"CREATE TEMP VIEW {name} AS {sql}")

    def define(self, name: str, sql: str) -> None:
        self._ask(f"CREATE TEMP TABLE {name} AS {sql}")

    gather, pick = define, view  # all in one piece

    def query(self, sql: str) -> pa.Table:
        return self._guarded(lambda: self._db.sql(sql).to_arrow_table())

    def apply(self, sql: str, by: Sequence[str], fn: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> pa.Table:
        rows = self.query(sql)
        if not rows.num_rows:
            return schema.empty_table()
        parts = [fn(group).cast(schema) for group in _groups(rows, by)]
        return pa.concat_tables(parts)

    def write(self, name: str, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / TABLE_FILE
            self._ask(copy_sql(name, temporary(file)))
            temporary(file).replace(file)
        except OSError as error:
            raise EpicastError(f"cannot write {folder}: {one_line(error)}") from None
        finally:
            temporary(folder / TABLE_FILE).unlink(missing_ok=True)  # half a table, if the disk is full

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> DuckKernel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask(self, sql: str) -> None:
        self._guarded(lambda: self._db.execute(sql))

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (duckdb.IOException, duckdb.InvalidInputException, duckdb.OutOfMemoryException) as error:
            raise EpicastError(f"cannot analyse {self._run.path}: {reason(error)}") from None


def reason(error: BaseException) -> str:
    """What went wrong. DuckDB wraps what the system said about a file in JSON."""
    said = one_line(error)
    inner = re.search(r'"exception_message":"((?:[^"\\]|\\.)*)"', said)
    return inner[1].replace('\\"', "") if inner else said


def _groups(rows: pa.Table, by: Sequence[str]) -> list[pa.Table]:
    if not by:
        return [rows]
    keys = rows.select(list(by))
    numbered = keys.append_column("_at", pa.array(range(rows.num_rows), pa.int64()))
    places = numbered.group_by(list(by), use_threads=False).aggregate([("_at", "list")]).column("_at_list")
    return [rows.take(place.values) for place in places]


def copy_sql(table: str, file: Path) -> str:
    """Writes a table, or a question in parentheses, to a file."""
    return f"COPY (FROM {table}) TO {_quoted(file)} (FORMAT parquet, COMPRESSION zstd)"


def read_sql(files: Iterable[str | Path]) -> str:
    return f"SELECT * FROM read_parquet([{', '.join(map(_quoted, files))}], hive_partitioning = false)"


def _quoted(path: str | Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
