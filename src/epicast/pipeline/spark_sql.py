"""The kernel for a run that is too large for one task: the same questions as Spark SQL over the whole cluster."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from epicast.core.errors import EpicastError
from epicast.pipeline.slices import SLICE_ROWS, slices_of, worker
from epicast.trace.files import one_line
from epicast.trace.run import RunFolder

PARTS = "part-*.parquet"

T = TypeVar("T")


class SparkKernel:
    def __init__(self, spark: SparkSession, run: RunFolder, scratch: Path, *, slice_rows: int = SLICE_ROWS) -> None:
        """`scratch` is a folder that every executor can write to."""
        self._spark, self._run = spark, run
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch = Path(mkdtemp(prefix="kernel-", dir=scratch))
        self._names: list[str] = []
        self._files: dict[str, list[str]] = {}  # of tables
        self._picks: dict[str, str] = {}  # questions to slices, by the names of their answers
        self._slices = slices_of(run.event_files(), slice_rows)
        self._open("events", [str(file) for file in run.event_files()])
        self._open("nodes", [str(run.nodes_file)])
        self._open("snapshots", [str(run.snapshots_file)])

    def _open(self, name: str, files: Sequence[str]) -> None:
        if not files:
            raise EpicastError(f"{self._run.path} holds no {name}: run it again")
        self._files[name] = list(files)
        self._named(name, self._spark.read.parquet(*files))

    def _named(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self._names.append(name)

    def view(self, name: str, sql: str) -> None:
        self._named(name, self._sql(sql))

    def define(self, name: str, sql: str) -> None:
        """Through files: what memory holds of a large table would be computed again where it does not fit."""
        folder, frame = self._scratch / name, self._sql(sql)
        self._ask(lambda: frame.write.parquet(str(folder), compression="zstd"))
        self._known(name, folder, frame.schema)  # given: no job to find it out

    def pick(self, name: str, sql: str) -> None:
        self.view(name, sql)
        self._picks[name] = sql

    def gather(self, name: str, sql: str) -> None:
        folder = self._scratch / name
        self._ask_slices(sql, folder)
        self._known(name, folder, from_arrow_schema(pq.read_schema(next(folder.glob(PARTS)))))

    def _known(self, name: str, folder: Path, schema: StructType) -> None:
        self._files[name] = [str(file) for file in sorted(folder.glob(PARTS))]
        self._named(name, self._spark.read.schema(schema).parquet(*self._files[name] or [str(folder)]))

    def _ask_slices(self, sql: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        tables = {name: files for name, files in self._files.items() if re.search(rf"\b{name}\b", sql)}
        tables.pop("events")
        work = worker(self._slices, tables, sql, folder)
        count = len(self._slices)
        self._ask(lambda: self._spark.range(0, count, 1, count).mapInArrow(work, "id long").toArrow())

    def query(self, sql: str) -> pa.Table:
        return self._ask(lambda: self._sql(sql).toArrow())

    def apply(self, sql: str, by: Sequence[str], fn: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> pa.Table:
        frame = self._sql(sql)
        groups = frame.groupBy(*by)
        return self._ask(
            lambda: groups.applyInArrow(lambda rows: fn(rows).cast(schema), from_arrow_schema(schema)).toArrow()
        )

    def write(self, name: str, folder: Path) -> None:
        written = self._scratch / f"{name}.written"
        if name in self._picks:
            self._ask_slices(self._picks[name], written)
        elif name not in self._files:
            self._ask(lambda: self._spark.table(name).write.parquet(str(written), compression="zstd"))
        try:
            if name in self._files:
                _copy(self._files[name], written)
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            written.replace(folder)
        except OSError as error:
            raise EpicastError(f"cannot write {folder}: {one_line(error)}") from None

    def close(self) -> None:
        for name in self._names:
            self._spark.catalog.dropTempView(name)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> SparkKernel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _sql(self, sql: str) -> DataFrame:
        return self._spark.sql(sql)

    def _ask(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except PySparkException as error:
            raise EpicastError(f"cannot analyse {self._run.path}: {_reason(error)}") from None


def _copy(files: Sequence[str], folder: Path) -> None:
    folder.mkdir()
    for number, file in enumerate(files):
        shutil.copyfile(file, folder / f"part-{number:05}.parquet")


def _reason(error: PySparkException) -> str:
    """What a task said, or else what Spark says."""
    told = [line for line in str(error).splitlines() if EpicastError.__name__ in line]
    return told[-1].partition(": ")[2] if told else one_line(error)
