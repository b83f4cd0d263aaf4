"""What to measure of the pipeline, and what came of it: plain data that can cross to another process and back."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

Way = Literal["make", "duckdb", "spark"]
Data = Literal["many", "large"]

WARM_UP_ROWS = 20_000
WARM_UP = "warm-up"  # the folder of runs with which a process warms up


class Job(msgspec.Struct, frozen=True):
    """Make runs, or analyse those that were made, with so many cores."""

    way: Way
    data: Data
    home: str  # the folder of everything
    cores: int = 1
    runs: int = 1  # to be made
    rows: int = 0  # of each of them

    @property
    def name(self) -> str:
        what = "many runs" if self.data == "many" else "one large run"
        if self.way == "make":
            return f"make {what}"
        how = {"duckdb": "DuckDB", "spark": "Spark"}[self.way]
        return f"{what}, {how}, {self.cores} core{'s' if self.cores > 1 else ''}"

    @property
    def runs_at(self) -> Path:
        return Path(self.home) / self.data

    @property
    def warm_up_at(self) -> Path:
        return Path(self.home) / WARM_UP

    @property
    def out(self) -> Path:
        """What the analysis writes."""
        return Path(self.home) / f"out-{self.data}-{self.way}-{self.cores}"

    @property
    def answers(self) -> Path:
        return Path(self.home) / f"answers-{self.data}-{self.way}-{self.cores}.parquet"


class Result(msgspec.Struct, frozen=True):
    rows: int = 0  # of all traces
    seconds: float = 0.0  # by the clock on the wall
    processor_seconds: float | None = None  # of all processes that took part, where the system tells
    session_seconds: float = 0.0  # to start Spark; not in `seconds`
    warm_up_seconds: float = 0.0  # to analyse a small run first; not in `seconds`
    peak_bytes: dict[str, int] = {}  # the most memory that each part took, where the system tells
    load: float = 0.0  # average load of the machine when it ended
