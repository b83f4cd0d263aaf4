"""The folder of one run, which is either all there or says that it is not.

    run.json                    what it is, how to run it again, its counters and digest; written last
    scenario.toml               the scenario with every setting written out
    events/part-00000.parquet   what happened
    snapshots.parquet           overlays at chosen moments
    nodes.parquet               the processes

While the run goes on, its status is "running" and its tables have temporary names that no `*.parquet` matches. `finish`
renames them, then replaces run.json in one step. A process that dies before this leaves a run that is not complete.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epicast import __version__
from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.trace import info as run_info
from epicast.trace import lock
from epicast.trace.batch import Names
from epicast.trace.files import TEMPORARY, one_line, sync, temporary, write_text
from epicast.trace.info import COMPLETE, INCOMPLETE, RUNNING, RunInfo
from epicast.trace.parquet import ParquetFile, are_wide
from epicast.trace.schema import NODES, SNAPSHOTS
from epicast.trace.tables import Nodes, Snapshot
from epicast.trace.writer import TraceWriter

EVENTS_FOLDER = "events"
SNAPSHOTS_FILE = "snapshots.parquet"
NODES_FILE = "nodes.parquet"
SCENARIO_FILE = "scenario.toml"


class RunFolder:
    """A run that exists. Nothing here changes it; `create` gives the one that is being written."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path, self.info = path, info

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        return cls(Path(path), run_info.load(Path(path)))

    @staticmethod
    def create(
        path: str | Path,
        *,
        scenario: Mapping[str, Any],
        scenario_text: str,
        seed: int,
        level: Level,
        engine: str,
        command: Sequence[str] | None = None,
        promises: Sequence[str] = (),
        overwrite: bool = False,
    ) -> OpenRun:
        """Start a run in a new or empty folder, or in place of one that never came to its end."""
        info = RunInfo(
            status=RUNNING,
            scenario=dict(scenario),
            seed=seed,
            level=level.name.lower(),
            engine=engine,
            command=list(sys.argv if command is None else command),
            epicast=__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            promises=list(promises),
        )
        run = OpenRun(Path(path), info, _claim(Path(path)))
        run.begin(scenario_text, overwrite=overwrite)
        return run

    def require_complete(self) -> RunFolder:
        """Itself, if the run came to its end and all its rows are there."""
        status = self.info.status
        if status == INCOMPLETE:
            raise EpicastError(f"{self.path} is incomplete ({self.info.reason}): run it again")
        if status == RUNNING:
            what = "is still running: wait for its end" if lock.is_held(self.path) else "was killed: run it again"
            raise EpicastError(f"{self.path} {what}")
        self._require_rows()
        return self

    def event_files(self) -> list[Path]:
        return sorted((self.path / EVENTS_FOLDER).glob("part-*.parquet"))

    @property
    def snapshots_file(self) -> Path:
        return self.path / SNAPSHOTS_FILE

    @property
    def nodes_file(self) -> Path:
        return self.path / NODES_FILE

    def _require_rows(self) -> None:
        try:
            rows = sum(pq.read_metadata(part).num_rows for part in self.event_files())
            for table in (self.snapshots_file, self.nodes_file):
                pq.read_metadata(table)
        except (OSError, pa.ArrowException) as error:
            raise EpicastError(f"{self.path} has lost a file or holds a damaged one: {one_line(error)}") from None
        if rows != self.info.rows:
            raise EpicastError(f"{self.path} holds {rows} of {self.info.rows} rows: run it again")


class OpenRun(RunFolder):
    """A run that is being written. It ends with `finish` or `fail`; leaving its `with` block without is a failure."""

    def __init__(self, path: Path, info: RunInfo, claim: int) -> None:
        super().__init__(path, info)
        self._claim = claim
        self._tables: list[ParquetFile] = []
        self._writer: TraceWriter | None = None

    def begin(self, scenario_text: str, *, overwrite: bool) -> None:
        """Make the folder this run's, or leave it as it is and raise."""
        try:
            self._write(lambda: _require_free(self.path, overwrite=overwrite))
            self._write(lambda: self._prepare(scenario_text))
        except BaseException:
            lock.release(self._claim)
            raise

    def events(self, names: Names) -> TraceWriter:
        """The one writer of the run's events."""
        assert self._writer is None, "the run has its writer already"
        self._writer = TraceWriter(self.path / EVENTS_FOLDER, self.info.trace_level, names)
        return self._writer

    def write_snapshot(self, snapshot: Snapshot) -> None:
        wide = are_wide(snapshot.node, snapshot.peer)
        self._write(lambda: self._table(self.snapshots_file, SNAPSHOTS, wide).write(snapshot.table()))

    def write_nodes(self, nodes: Nodes) -> None:
        self._write(lambda: self._table(self.nodes_file, NODES, are_wide(nodes.node)).write(nodes.table()))

    def finish(self, counters: Mapping[str, Any], digest: str = "") -> None:
        """Make the run complete. If that cannot be, it is marked incomplete and the error raised."""
        assert self.info.status == RUNNING, "the run has ended"
        try:
            writer = self._writer or self.events(Names())
            writer.close()
            self._write(self._close_tables)
            self._write(lambda: self._publish(writer))
            done = replace(self.info, status=COMPLETE, rows=writer.rows, digest=digest, counters=dict(counters))
            self._write(lambda: done.save(self.path))
        except EpicastError as error:
            self.fail(str(error))
            raise
        self.info = done
        lock.release(self._claim)

    def fail(self, reason: str) -> None:
        """Mark the run incomplete and keep what can be closed in good order. It raises no error on top of the first."""
        if self.info.status != RUNNING:
            return
        rows = self._salvage()
        self.info = replace(self.info, status=INCOMPLETE, reason=" ".join(reason.split()), rows=rows)
        with suppress(OSError):  # on a full disk run.json goes on saying "running", which is no lie about the rows
            self.info.save(self.path)
        lock.release(self._claim)

    def __enter__(self) -> OpenRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.fail("it ended without a result")
        elif isinstance(error, KeyboardInterrupt):
            self.fail("interrupted")
        else:
            self.fail(f"{type(error).__name__}: {error}")

    def _prepare(self, scenario_text: str) -> None:
        # run.json first: from here on, whatever else the folder holds does not count as complete.
        self.info.save(self.path)
        _clear(self.path)
        (self.path / EVENTS_FOLDER).mkdir(exist_ok=True)
        write_text(self.path / SCENARIO_FILE, scenario_text)

    def _table(self, path: Path, schema: pa.Schema, wide: bool) -> ParquetFile:
        for table in self._tables:
            if table.path == path:
                return table
        self._tables.append(ParquetFile(path, schema, wide_ids=wide))
        return self._tables[-1]

    def _close_tables(self) -> None:
        for path, schema in ((self.snapshots_file, SNAPSHOTS), (self.nodes_file, NODES)):
            self._table(path, schema, False).close()

    def _publish(self, writer: TraceWriter) -> None:
        writer.publish()
        for table in self._tables:
            table.publish()
        sync(self.path / EVENTS_FOLDER)
        sync(self.path)

    def _salvage(self) -> int:
        """Publish what can be closed, remove the rest; returns how many events are left."""
        writer = self._writer
        if writer is not None:
            with suppress(EpicastError):
                writer.close()
            with suppress(OSError):
                writer.publish()
        for table in self._tables:
            try:
                table.close()
                table.publish()
            except (OSError, ValueError, pa.ArrowException):
                table.discard()
        return sum(part.rows for part in writer.parts) if writer else 0

    def _write(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (OSError, pa.ArrowException) as error:
            raise EpicastError(f"cannot write the run in {self.path}: {one_line(error)}") from error


def _claim(path: Path) -> int:
    """Keep other runs out of the folder; returns the lock."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        claim = lock.acquire(path)
    except OSError as error:
        raise EpicastError(f"cannot write a run in {path}: {one_line(error)}") from None
    if claim is None:
        raise EpicastError(f"{path} is being written by another run: choose another folder")
    return claim


def _require_free(path: Path, *, overwrite: bool) -> None:
    """Raise unless a run may start here: a folder of someone else's files is never touched."""
    entries = {entry.name for entry in path.iterdir()}
    if entries <= {temporary(Path(run_info.NAME)).name}:  # new, or killed in its first moment
        return
    try:
        status = run_info.load(path).status
    except EpicastError as error:
        raise EpicastError(f"{error}; choose an empty folder") from None
    if status == COMPLETE and not overwrite:
        raise EpicastError(f"{path} holds a complete run: choose another folder, or overwrite it")


def _clear(path: Path) -> None:
    """Remove what an earlier run wrote here, by name, and nothing else."""
    names = [SNAPSHOTS_FILE, NODES_FILE, SCENARIO_FILE]
    old = [path / (name + end) for name in names for end in ("", TEMPORARY)]
    for pattern in ("part-*.parquet", "part-*.parquet" + TEMPORARY):
        old += (path / EVENTS_FOLDER).glob(pattern)
    for file in old:
        file.unlink(missing_ok=True)
