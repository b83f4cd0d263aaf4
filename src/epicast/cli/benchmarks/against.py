"""Two versions of epicast in turn, by one driver: how much more processor time a delivery takes in the newer one.

Each measurement of one version is followed by the same of the other, first the one and in the next round the other, so
that whatever else the machine does hits both. Of the ratios of a cell the median over the rounds counts, of the cells
the geometric mean. Only processor time is judged: it says the same on a busy machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple, Protocol

import msgspec

from epicast.cli import formats as f
from epicast.cli.benchmarks.verdict import Target
from epicast.core.errors import EpicastError

FOREIGN = Path(__file__).with_name("foreign.py")
PATIENCE_S = 60.0
SLOWER_MAX = 1.05  # our bound: what a version may cost over the one before it
ROUNDS = 7
NEW, OLD = "new", "old"

_FACTS = """
import epicast, json, platform
compiled = {"live": not hasattr(epicast.Message, "__struct_fields__"),
    "engine": epicast.simulate("flood", nodes=2, messages=1).engine == "compiled"}
print(json.dumps({"version": epicast.__version__, "package": epicast.__file__,
    "interpreter": platform.python_version(), "compiled": compiled}))
"""


class Environment(msgspec.Struct, frozen=True):
    """An interpreter, and the epicast that it has."""

    python: str
    version: str
    package: str
    interpreter: str
    compiled: dict[str, bool]  # parts that are in use, and not their pure twins

    @classmethod
    def of(cls, python: str) -> Environment:
        found = shutil.which(python)
        if found is None:
            raise EpicastError(f"--against: {python} is no program; give the Python of an environment with epicast")
        done = _run([found, "-P", "-c", _FACTS])
        if done.returncode != 0:
            raise EpicastError(f"--against: {python} has no epicast that can be measured: {_last_line(done.stderr)}")
        return msgspec.convert({"python": found, **msgspec.json.decode(done.stdout)}, cls)

    @classmethod
    def ours(cls) -> Environment:
        return cls.of(sys.executable)


def require_alike(new: Environment, old: Environment) -> None:
    for part in new.compiled:
        if new.compiled[part] != old.compiled[part]:
            pure = old if new.compiled[part] else new
            raise EpicastError(
                f"--against: {pure.package} runs without its compiled {part}, the other one with it: build both alike"
            )


def surroundings() -> dict[str, str]:
    """Of a process that is to find the epicast of its interpreter and no other."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def command(python: str, module: str, argument: str) -> list[str]:
    """`module` of this folder, run with the epicast of that interpreter."""
    return [python, "-P", str(FOREIGN), module, argument]


def run_module(python: str, module: str, argument: str) -> str:
    """What it prints; raises what it says if it fails."""
    done = _run(command(python, module, argument), None)
    if done.returncode != 0:
        raise EpicastError(_last_line(done.stderr) or f"exit code {done.returncode}")
    return done.stdout


def _run(words: list[str], timeout_s: float | None = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=timeout_s, env=surroundings(), cwd=FOREIGN.parent
    )


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.strip().splitlines()) if line.strip()), "")


class Cell(Protocol):
    """What is measured of either version."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """Cells of a kind are judged together."""


class Sample(msgspec.Struct, frozen=True):
    cpu_us: float | None = None  # processor time for a delivery
    error: str = ""

    @property
    def outcome(self) -> str:
        return self.error or f"{f.number(self.cpu_us)} us"


Versions = Mapping[str, Environment]
Pair = dict[str, Sample]  # by version, of one round
Play = Callable[[Cell, Versions], Pair]
"""Measures both; the first of them begins."""
Tell = Callable[[int, int, Cell, Any], None]


class Outcome(NamedTuple):
    """Of a pair, for whoever watches."""

    pair: Pair

    @property
    def outcome(self) -> str:
        return ", ".join(f"{version} {sample.outcome}" for version, sample in self.pair.items())


def alternate(cells: Sequence[Cell], versions: Versions, rounds: int, play: Play, tell: Tell) -> list[list[Pair]]:
    """The pairs of each cell."""
    found: list[list[Pair]] = [[] for _ in cells]
    for number in range(rounds):
        order = (OLD, NEW) if number % 2 else (NEW, OLD)
        for at, cell in enumerate(cells):
            pair = play(cell, {version: versions[version] for version in order})
            found[at].append(pair)
            tell(number * len(cells) + at + 1, rounds * len(cells), cell, Outcome(pair))
    return found


def ratios(pairs: Sequence[Pair]) -> list[float]:
    """Of the rounds in which both could be measured: the new one's time over the old one's."""
    times = [(pair[NEW].cpu_us, pair[OLD].cpu_us) for pair in pairs]
    return [new / old for new, old in times if new and old]


def judged(cells: Sequence[Cell], found: Sequence[Sequence[Pair]]) -> dict[str, float | None]:
    """The names of the targets."""
    middles: dict[str, list[float]] = {cell.kind: [] for cell in cells}
    for cell, pairs in zip(cells, found, strict=True):
        if of_cell := ratios(pairs):
            middles[cell.kind].append(median(of_cell))
    every = [middle for of_kind in middles.values() for middle in of_kind]
    measured: dict[str, float | None] = {
        kind: round(geometric_mean(values), 4) if values else None for kind, values in middles.items()
    }
    if len(middles) > 1:
        measured["all"] = round(geometric_mean(every), 4) if every else None
    measured["faults"] = sum(bool(pair[NEW].error) for pairs in found for pair in pairs)
    return measured


def targets(measured: Mapping[str, object]) -> dict[str, Target]:
    words = "processor time for a delivery over that of the older version"
    found = {
        name: Target(SLOWER_MAX, False, f"{words}, {'all cells' if name == 'all' else name}")
        for name in measured
        if name != "faults"
    }
    found["faults"] = Target(0, False, "measurements of the newer version that failed or lost messages")
    return found
