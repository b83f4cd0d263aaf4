"""Where the files of a sweep are.

    experiment.toml                the experiment with every setting written out
    runs/<run>/                    one run folder each, see `trace/run.py`
    unfinished/                    runs that are being written
    tables/runs/                   one row per run: what it is and what became of it (Parquet)
    tables/<table>/run=<run>/      the tables of the runs (Parquet, one dataset per table)
    analysed/<version>/<run>       verdicts and metrics of one run
    answers/                       the same of all runs (Parquet)
    report.html

A run's name is made from its scenario, its seed and the version of the code, so a sweep that is started again finds
what it has done already, and a change of the code makes new runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epicast.core.errors import EpicastError
from epicast.pipeline.journal import Journal
from epicast.trace.files import one_line


@dataclass(frozen=True)
class Layout:
    root: Path
    runs_at: Path | None = None  # where the runs are, if not here

    @property
    def experiment(self) -> Path:
        return self.root / "experiment.toml"

    @property
    def runs(self) -> Path:
        return self.runs_at or self.root / "runs"

    @property
    def unfinished(self) -> Path:
        return self.root / "unfinished"

    @property
    def sweep(self) -> Path:
        """The table of runs."""
        return self.root / "tables" / "runs"

    @property
    def journal(self) -> Journal:
        return Journal(self.root / "journal")

    @property
    def answers(self) -> Path:
        return self.root / "answers"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def report(self) -> Path:
        return self.root / "report.html"

    def run(self, name: str) -> Path:
        return self.runs / name

    def table(self, table: str, run: str) -> Path:
        return self.root / "tables" / table / f"run={run}"

    def analysed(self, version: str, run: str) -> Path:
        return self.root / "analysed" / version / f"{run}.parquet"

    def make(self) -> Layout:
        try:
            for folder in (self.runs, self.unfinished):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EpicastError(f"cannot write in {self.root}: {one_line(error)}; choose another --out") from None
        return self
