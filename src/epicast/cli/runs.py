"""Plays a world, with or without a run folder that keeps what happened."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from epicast.cli.progress import Report
from epicast.core.errors import EpicastError
from epicast.core.records import Level

if TYPE_CHECKING:
    from epicast.sim.summary import Summary
    from epicast.sim.world import World

LEVELS = {level.name.lower(): level for level in (Level.DELIVERIES, Level.FULL)}


def trace_level(name: str) -> Level:
    if name not in LEVELS:
        raise EpicastError(f"--trace-level: expected one of {', '.join(LEVELS)}, got {name!r}")
    return LEVELS[name]


def command() -> list[str]:
    """What was typed, wherever the program itself is installed."""
    return ["epicast", *sys.argv[1:]]


def replay_command() -> str:
    return shlex.join(command())


def play(world: World, report: Report | None = None) -> Summary:
    return world.run(perf_counter, report)


def play_into(folder: Path, world: World, report: Report | None = None, *, overwrite: bool = False) -> Summary:
    """The run folder is complete only if the run came to its end: whatever happens, it never lies about that."""
    from epicast.trace.run import RunFolder

    open_run = RunFolder.create(
        folder,
        scenario=world.scenario.as_dict(),
        scenario_text=world.scenario.to_toml(),
        seed=world.seed,
        level=world.engine.level,
        engine="compiled" if world.engine.compiled else "pure",
        command=command(),
        overwrite=overwrite,
    )
    with open_run as run:
        world.sinks.append(run.events(world.names).write)
        world.on_snapshot = run.write_snapshot
        summary = play(world, report)
        run.write_nodes(world.nodes_table())
        if summary.interrupted:
            run.fail("interrupted")
        else:
            run.finish(summary.as_dict(), summary.trace_digest or "")
    return summary
