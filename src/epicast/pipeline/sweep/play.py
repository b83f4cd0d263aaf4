"""One run of a sweep, on whatever executor it falls to.

It is written beside the others under a name of its own and renamed when it is complete: a task that is killed half-way
leaves nothing that looks like a run, and its second attempt does not meet the first.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from epicast.core.errors import EpicastError
from epicast.pipeline.layout import Layout
from epicast.pipeline.sweep.experiment import Run
from epicast.sim.recorded import play_into
from epicast.sim.world import World
from epicast.trace.files import one_line
from epicast.trace.info import COMPLETE
from epicast.trace.run import RunFolder

DONE, FOUND, FAILED = "done", "found", "failed"
"""It was played; an earlier sweep had played it; it cannot be played."""


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str = ""
    rows: int = 0


def play(run: Run, layout: Layout, command: list[str]) -> Outcome:
    """Whatever is wrong with one run is its own outcome: the others go on."""
    rows = _finished(layout.run(run.name))
    if rows is not None:
        outcome = Outcome(FOUND, rows=rows)
    else:
        try:
            outcome = Outcome(DONE, rows=_played(run, layout, command))
        except OSError as error:
            outcome = Outcome(FAILED, f"cannot write in {layout.unfinished}: {one_line(error)}")
        except Exception as error:  # also a protocol's mistake: the same run would fail again
            what = str(error) if isinstance(error, EpicastError) else f"{type(error).__name__}: {error}"
            outcome = Outcome(FAILED, " ".join(what.split()))
    layout.journal.note(run.name, failed=outcome.status == FAILED)
    return outcome


def _finished(folder: Path) -> int | None:
    """How many rows it has, if it is there and complete."""
    try:
        info = RunFolder.open(folder).require_complete().info
    except EpicastError:
        return None
    return info.rows if info.status == COMPLETE else None


def _played(run: Run, layout: Layout, command: list[str]) -> int:
    place = Path(mkdtemp(prefix=f"{run.name}-", dir=layout.unfinished))
    place.chmod(0o755)
    try:
        world = World(run.point.scenario, run.seed, level=run.level)
        play_into(place, world, command)
        rows = RunFolder.open(place).require_complete().info.rows
        _publish(place, layout.run(run.name))
        return rows
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _publish(place: Path, target: Path) -> None:
    try:
        place.rename(target)
    except OSError:
        if _finished(target) is not None:
            return  # another attempt was quicker; the same run is the same run
        shutil.rmtree(target, ignore_errors=True)  # damaged
        place.rename(target)
