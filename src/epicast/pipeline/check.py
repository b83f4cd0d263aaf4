"""The guarantees of runs that are there already: one run folder, all runs of a sweep, or the journals of live nodes.

Two engines judge, and come to the same verdicts: both ask the same SQL. DuckDB does it in this process and starts at
once. Spark takes longer to start than a small run takes to judge, but it uses all cores, or a cluster: that pays for
many runs, and for runs that do not fit into memory. Nothing of Spark is imported unless it judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from epicast.core.errors import EpicastError
from epicast.pipeline.judged import Gathered, Judged
from epicast.pipeline.layout import Layout
from epicast.pipeline.small_runs import LARGE_ROWS, Plan, analyse_small
from epicast.trace import info as run_info
from epicast.trace.merge import find_journals, merge
from epicast.trace.run import RunFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from epicast.pipeline.journal import Progress

Engine = Literal["duckdb", "spark"]

MERGED = "merged"
HERE_ROWS_MAX = LARGE_ROWS
"""Rows of all runs together that one process judges unless it is told otherwise: below a minute of one core."""
HERE_RUNS_MAX = 200
"""So many runs, too: each costs some 0.1 s however small it is, and Spark takes some 15 s to start."""
UNJUDGED_MAX = 20


@dataclass(frozen=True)
class Checked:
    runs: int
    judged: list[Judged]
    unanalysed: list[tuple[str, str]]  # the first ones, and why
    engine: Engine

    @property
    def broken(self) -> bool:
        return any(each.broken for each in self.judged)


@dataclass(frozen=True)
class Found:
    """The runs in a folder."""

    home: Path  # the folder that holds them
    runs: list[tuple[str, int]]  # their names, and how many rows each has

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.runs)


# What there is to judge


def require_folder(folder: Path) -> None:
    """Before anything else is started."""
    if not folder.exists():
        raise EpicastError(f"there is no folder {folder}: give a run folder, a sweep or a folder of journals")
    if not folder.is_dir():
        raise EpicastError(f"{folder} is a file: give the folder of a run, of a sweep or of journals")


def merge_journals(folder: Path, command: Sequence[str]) -> RunFolder | None:
    """The complete run of the live nodes that wrote journals in the folder, made anew in a folder below it. None if the
    folder is a run or a sweep, or holds no journals."""
    if (folder / run_info.NAME).exists() or Layout(folder).runs.is_dir():
        return None
    journals = find_journals(folder)
    if not journals:
        return None
    return merge(journals, folder / MERGED, command=command, overwrite=True).require_complete()


def find_runs(folder: Path) -> Found:
    if (folder / run_info.NAME).exists():
        info = RunFolder.open(folder).require_complete().info
        return Found(folder.parent, [(folder.name, info.rows)])
    layout = Layout(folder)
    return Found(layout.runs, _runs_of(layout))


def _runs_of(layout: Layout) -> list[tuple[str, int]]:
    """The run folders of a sweep. Those that are damaged are among them: their analysis will say so."""
    if not layout.runs.is_dir():
        raise EpicastError(
            f"{layout.root} is neither a run folder nor a sweep, and no live node wrote a journal there:"
            " give a folder with run.json, runs/ or journals"
        )
    found = [(entry.name, _rows(entry)) for entry in sorted(layout.runs.iterdir()) if entry.is_dir()]
    if not found:
        raise EpicastError(f"{layout.root} holds no runs: run the sweep first")
    return found


def _rows(folder: Path) -> int:
    try:
        return run_info.load(folder).rows
    except EpicastError:
        return 0


# Who judges


def choose(asked: str, found: Found, *, cluster: bool = False) -> tuple[Engine, str]:
    """The engine, and why it is Spark if nobody asked for it. `cluster`: it was said where Spark runs."""
    if asked not in ("auto", "duckdb", "spark"):
        raise EpicastError(f"--engine: expected auto, duckdb or spark, got {asked!r}")
    if asked == "duckdb":
        if cluster:
            raise EpicastError("--engine duckdb judges in this process: leave out --master and --spark-ui")
        return "duckdb", ""
    if asked == "spark" or cluster:
        return "spark", ""
    if found.rows > HERE_ROWS_MAX:
        return "spark", f"{found.rows:,} rows are more than the {HERE_ROWS_MAX:,} that one process judges"
    if len(found.runs) > HERE_RUNS_MAX:
        return "spark", f"{len(found.runs):,} runs are more than the {HERE_RUNS_MAX:,} that one process judges"
    return "duckdb", ""


def check_here(found: Found, on_progress: Progress | None = None) -> Checked:
    """By DuckDB in this process, one run after the other."""
    gathered = Gathered()
    unanalysed: list[tuple[str, str]] = []
    with TemporaryDirectory(prefix="epicast-check-") as place:
        plan = Plan(Layout(Path(place), runs_at=found.home), keep_tables=False)
        for number, (name, _) in enumerate(found.runs):
            if on_progress is not None:
                on_progress(number, len(unanalysed), len(found.runs))
            answer = analyse_small(name, plan)
            gathered.add(answer)
            error = answer.column("error")[0].as_py()
            if error is not None:
                unanalysed.append((name, error))
    return Checked(len(found.runs), gathered.judged(), unanalysed[:UNJUDGED_MAX], "duckdb")


def check_on_spark(spark: SparkSession, found: Found, on_progress: Progress | None = None) -> Checked:
    """A task for each run, or all tasks for one that is too large for one."""
    from epicast.pipeline.analyse import analyse_runs
    from epicast.pipeline.results import judged

    with TemporaryDirectory(prefix="epicast-check-") as place:
        plan = Plan(Layout(Path(place), runs_at=found.home), keep_tables=False)
        frame = spark.createDataFrame(found.runs, "run string, rows long")
        answers = analyse_runs(spark, frame, plan, on_progress)
        failed = answers.where("error IS NOT NULL").limit(UNJUDGED_MAX).collect()
        unanalysed = [(row["run"], row["error"]) for row in failed]
        return Checked(len(found.runs), judged(answers), unanalysed, "spark")
