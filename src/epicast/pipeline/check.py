"""The guarantees of runs that are there already: one run folder, all runs of a sweep, or the journals of live nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from epicast.core.errors import EpicastError
from epicast.pipeline.analyse import Plan, analyse_runs
from epicast.pipeline.journal import Progress
from epicast.pipeline.layout import Layout
from epicast.pipeline.results import Judged, judged
from epicast.trace import info as run_info
from epicast.trace.merge import find_journals, merge
from epicast.trace.run import RunFolder

MERGED = "merged"


@dataclass(frozen=True)
class Checked:
    runs: int
    judged: list[Judged]
    unanalysed: list[tuple[str, str]]  # the first ones, and why

    @property
    def broken(self) -> bool:
        return any(each.broken for each in self.judged)


def merge_journals(folder: Path, command: Sequence[str]) -> RunFolder | None:
    """The complete run of the live nodes that wrote journals in the folder, made anew in a folder below it. None if the
    folder is a run or a sweep, or holds no journals."""
    if (folder / run_info.NAME).exists() or Layout(folder).runs.is_dir():
        return None
    journals = find_journals(folder)
    if not journals:
        return None
    return merge(journals, folder / MERGED, command=command, overwrite=True).require_complete()


def check_folder(spark: SparkSession, folder: Path, on_progress: Progress | None = None) -> Checked:
    if (folder / run_info.NAME).exists():
        info = RunFolder.open(folder).require_complete().info
        runs, home = [(folder.name, info.rows)], folder.parent
    else:
        layout = Layout(folder)
        runs, home = _runs_of(layout), layout.runs
    with TemporaryDirectory(prefix="epicast-check-") as place:
        plan = Plan(Layout(Path(place), runs_at=home), keep_tables=False)
        frame = spark.createDataFrame(runs, "run string, rows long")
        answers = analyse_runs(spark, frame, plan, on_progress)
        failed = answers.where("error IS NOT NULL").limit(20).collect()
        return Checked(len(runs), judged(answers), [(row["run"], row["error"]) for row in failed])


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
