"""Plays a world for a command, with or without a run folder that keeps what happened."""

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


def record(folder: Path, world: World, report: Report | None = None, *, overwrite: bool = False) -> Summary:
    from epicast.sim.recorded import play_into

    return play_into(folder, world, command(), clock=perf_counter, on_progress=report, overwrite=overwrite)
