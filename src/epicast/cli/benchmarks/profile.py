"""Where the time of a stream goes: the pure engine under the profiler of the standard library.

What a built-in function takes counts for the module that called it. A profiler slows calls down, so shares say which
parts to look at, not how fast they are.
"""

from __future__ import annotations

import cProfile
import pstats
import re
from pathlib import Path
from typing import Any, NamedTuple

import epicast
from epicast.cli.benchmarks.job import Job
from epicast.cli.benchmarks.simulated import settled

Function = tuple[str, int, str]  # file, line, name

HANDLER = re.compile(r"_?on_\w+")
HOME = Path(epicast.__file__).parent


class Part(NamedTuple):
    name: str
    calls: int
    seconds: float
    share: float


class Profile(NamedTuple):
    events: int
    seconds: float
    modules: list[Part]  # own time
    handlers: list[Part]  # time with all that they call
    functions: list[Part]  # own time


def profile(stack: str, nodes: int, messages: int) -> Profile:
    world, work = settled(Job("stream", "pure", nodes, messages, stack=stack))
    before = world.engine.events
    profiler = cProfile.Profile()
    profiler.runcall(work)
    stats: Any = pstats.Stats(profiler)
    total = stats.total_tt
    own = _own_times(stats.stats)
    return Profile(
        world.engine.events - before,
        total,
        _parts(_by_module(own), total),
        _parts(_handlers(stats.stats), total),
        _parts({_label(function): found for function, found in own.items()}, total),
    )


def _own_times(stats: dict[Function, Any]) -> dict[Function, tuple[int, float]]:
    """Calls and seconds of each Python function, with the built-ins that it calls."""
    own: dict[Function, tuple[int, float]] = {}
    for function, (_, calls, seconds, _, callers) in stats.items():
        if not _is_builtin(function):
            _add(own, function, calls, seconds)
            continue
        for caller, (_, _, caller_seconds, _) in callers.items():
            _add(own, caller, 0, caller_seconds)
    return own


def _by_module(own: dict[Function, tuple[int, float]]) -> dict[str, tuple[int, float]]:
    modules: dict[str, tuple[int, float]] = {}
    for (file, _, _), (calls, seconds) in own.items():
        _add(modules, _module(file), calls, seconds)
    return modules


def _handlers(stats: dict[Function, Any]) -> dict[str, tuple[int, float]]:
    return {
        _label(function): (calls, cumulative)
        for function, (_, calls, _, cumulative, _) in stats.items()
        if HANDLER.fullmatch(function[2])
    }


def _parts(times: dict[str, tuple[int, float]], total: float) -> list[Part]:
    parts = [Part(name, calls, seconds, seconds / total) for name, (calls, seconds) in times.items()]
    return sorted(parts, key=lambda part: -part.seconds)


def _add(times: dict[Any, tuple[int, float]], key: Any, calls: int, seconds: float) -> None:
    old_calls, old_seconds = times.get(key, (0, 0.0))
    times[key] = (old_calls + calls, old_seconds + seconds)


def _label(function: Function) -> str:
    return f"{_module(function[0])}: {function[2]}"


def _module(file: str) -> str:
    path = Path(file)
    return path.relative_to(HOME).with_suffix("").as_posix() if path.is_relative_to(HOME) else path.stem


def _is_builtin(function: Function) -> bool:
    return function[0] == "~"
