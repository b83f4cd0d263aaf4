"""What the analysis of one run asks of whoever holds its tables: SQL in, small Arrow tables out.

There are two kernels. `duck.DuckKernel` runs inside a Spark task and takes a run that fits into one.
`spark_sql.SparkKernel` spreads a run that does not over the whole cluster. Every question is one SQL text that both
understand, so both give the same answers, and tests hold them to it.

The common ground of both dialects: plain SELECT, joins, `NOT EXISTS`, `UNION ALL`, aggregates with `FILTER`, window
functions with explicit frames, `percentile_cont(x) WITHIN GROUP (ORDER BY y)`, `CAST`, `CASE`, `COALESCE`. Division of
integers differs, so cast one side to DOUBLE. Names that either side reserves (`row`, `rows`, `end`, `value`) need care:
`row` is fine as a column, as long as it is not called like a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from epicast.core.records import Level
from epicast.trace.info import RunInfo

if TYPE_CHECKING:
    import pyarrow as pa

DROPS, ORDER = "drops", "order"
EXTRAS = (DROPS, ORDER)
"""What is measured only where an experiment asks for it."""


class Kernel(Protocol):
    """Holds `events`, `nodes` and `snapshots` of one run under these names, with the columns of `trace/schema.py`."""

    def view(self, name: str, sql: str) -> None:
        """A name for a question, computed whenever it is used."""
        ...

    def define(self, name: str, sql: str) -> None:
        """A table that is computed once, for later questions."""
        ...

    def pick(self, name: str, sql: str) -> None:
        """A view of rows of `events`, each for itself: no sums, no joins."""
        ...

    def gather(self, name: str, sql: str) -> None:
        """Like `define`, but it may be asked of each slice of `events` apart, and all answers are put together. So a
        sum is one of many that are to be added up by whoever asks the table. It may name tables that are defined."""
        ...

    def query(self, sql: str) -> pa.Table:
        """The answer comes to whoever asks, so it must be small: aggregates, or rows up to a LIMIT."""
        ...

    def apply(self, sql: str, by: Sequence[str], fn: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> pa.Table:
        """Hands the rows of each group to a function where they are, and brings back what it makes of them. For what
        SQL cannot say, such as questions about graphs."""
        ...

    def write(self, name: str, folder: Path) -> None:
        """A table or view as Parquet files in a folder of its own, whole or not at all."""
        ...


@dataclass(frozen=True)
class RunFacts:
    """What the checks and metrics must know of a run besides its tables."""

    promises: frozenset[str]  # of its stack, by the names of the guarantees
    level: Level
    in_flight: int | None  # messages under way at its end, where that is known
    seed: int = 0  # for what is drawn by lot when the run is looked at
    extra: tuple[str, ...] = ()  # what is measured on top, by the names of EXTRAS: too costly for every run

    @classmethod
    def of(cls, info: RunInfo, extra: Sequence[str] = ()) -> RunFacts:
        in_flight: Any = info.counters.get("in_flight")
        under_way = in_flight if isinstance(in_flight, int) else None
        return cls(frozenset(info.promises), info.trace_level, under_way, info.seed, tuple(extra))

    @property
    def full(self) -> bool:
        return self.level == Level.FULL
