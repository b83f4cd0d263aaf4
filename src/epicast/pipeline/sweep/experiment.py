"""An experiment: a scenario, what of it varies, and how many seeds.

    title = "Duplicates of flooding"
    question = "How many copies of a message does a process get?"
    seeds = 5
    trace = "full"
    [scenario]
    stack = "flood"
    nodes = 512
    [axes.view]
    key = "overrides.membership.active_size"
    values = [4, 6, 8, 10]
    [quick.scenario]
    nodes = 128

Every combination of the axes' values is a *point*; every point runs once per seed. The same seeds serve all points, so
differences between points are not differences of luck. `quick` says what a first look may leave out.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from epicast.core.config import Config
from epicast.core.errors import ConfigError
from epicast.core.records import Level
from epicast.pipeline.code_version import code_version
from epicast.sim import toml_text
from epicast.sim.latency import parse_latency
from epicast.sim.scenario import Scenario

Table = dict[str, Any]
Value = bool | int | float | str
RUNS_MAX = 1_000_000


class Axis(Config, frozen=True):
    """One thing that varies: a setting and its values, or cases that each set several."""

    key: str = ""  # of the scenario, with dots: "overrides.membership.active_size"
    values: tuple[Value, ...] = ()
    cases: dict[str, Table] = {}  # by their label: settings with dotted keys

    def check(self) -> None:
        if bool(self.key) != bool(self.values) or bool(self.values) == bool(self.cases):
            raise ConfigError("give key and values, or cases")

    def choices(self) -> list[tuple[str, Table]]:
        if self.cases:
            return list(self.cases.items())
        return [(str(value), {self.key: value}) for value in self.values]


class Quick(Config, frozen=True):
    seeds: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    minutes: float | None = None
    scenario: Table = {}
    axes: dict[str, Axis] = {}  # replace those of the same name


@dataclass(frozen=True)
class Point:
    """One combination of the axes' values."""

    number: int
    labels: dict[str, str]  # by axis
    scenario: Scenario

    def __str__(self) -> str:
        return ", ".join(f"{axis} {label}" for axis, label in self.labels.items()) or "the only point"


@dataclass(frozen=True)
class Run:
    """One row of a sweep."""

    number: int
    point: Point
    seed: int
    level: Level

    @cached_property
    def name(self) -> str:
        """Stands for all that decides what the run does."""
        what = [self.point.scenario.as_dict(), self.seed, self.level.name, code_version()]
        return sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:20]


class Experiment(Config, frozen=True):
    title: str
    question: str = ""
    answers: str = ""  # the published figure or table
    minutes: float = 0.0  # that it takes on two cores
    seeds: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 5
    first_seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)] = 1
    trace: Literal["deliveries", "full"] = "full"
    extra: tuple[Literal["drops", "order"], ...] = ()  # what is measured on top, see `kernel.EXTRAS`
    scenario: Table = {}
    axes: dict[str, Axis] = {}
    quick: Quick = Quick()

    def check(self) -> None:
        if len(self) > RUNS_MAX:
            raise ConfigError(
                f"{len(self):,} runs are too many: expected at most {RUNS_MAX:,}; use fewer values or seeds"
            )

    @classmethod
    def read(cls, path: Path) -> Experiment:
        try:
            return cls.from_toml(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}; give an experiment's file") from None
        except (ConfigError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def from_toml(cls, text: str) -> Experiment:
        try:
            return cls.load(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not TOML: {error}") from None

    def to_toml(self) -> str:
        return toml_text.write(_plain(msgspec.to_builtins(self)))

    def smaller(self) -> Experiment:
        """The quick variant."""
        quick = self.quick
        return msgspec.structs.replace(
            self,
            seeds=quick.seeds or self.seeds,
            minutes=self.minutes if quick.minutes is None else quick.minutes,
            scenario=_merged(self.scenario, quick.scenario),
            axes={name: quick.axes.get(name, axis) for name, axis in self.axes.items()},
        )

    def with_seeds(self, seeds: int | None) -> Experiment:
        return self if seeds is None else self._with(seeds=seeds)

    def with_latency(self, latency: str | None) -> Experiment:
        """On another network."""
        if latency is None:
            return self
        for name, axis in self.axes.items():
            if any(key.partition(".")[0] == "latency" for _, changes in axis.choices() for key in changes):
                raise ConfigError(f"latency: this experiment has networks of its own, by {name}")
        model: Table = msgspec.to_builtins(parse_latency(latency))
        if "file" in model:
            model["file"] = str(Path(model["file"]).resolve())  # the runs are played in other folders
        return self._with(scenario={**self.scenario, "latency": model})

    def _with(self, **changes: Any) -> Experiment:
        return Experiment.load({**_plain(msgspec.to_builtins(self)), **changes})

    @property
    def level(self) -> Level:
        return Level[self.trace.upper()]

    def points(self) -> list[Point]:
        """All of them, each with a scenario that makes sense."""
        choices = product(*(axis.choices() for axis in self.axes.values()))
        return [self._point(number, choice) for number, choice in enumerate(choices)]

    def _point(self, number: int, choice: tuple[tuple[str, Table], ...]) -> Point:
        settings = self.scenario
        for _, changes in choice:
            for key, value in changes.items():
                settings = _merged(settings, _nested(key, value))
        labels = {axis: label for axis, (label, _) in zip(self.axes, choice, strict=True)}
        try:
            return Point(number, labels, Scenario.load(settings))
        except ConfigError as error:
            where = ", ".join(f"{axis} {label}" for axis, label in labels.items())
            raise ConfigError(f"scenario{f' of {where}' if where else ''}: {error}") from None

    def __len__(self) -> int:
        """The number of runs."""
        count = self.seeds
        for axis in self.axes.values():
            count *= len(axis.choices())
        return count

    def run(self, number: int) -> Run:
        """Runs of the same seed lie side by side, so the first look at a sweep shows every point."""
        points = len(self) // self.seeds
        point = self._numbered[number % points]
        return Run(number, point, self.first_seed + number // points, self.level)

    @property
    def _numbered(self) -> list[Point]:
        return _points(self.to_toml())


def _points(text: str) -> list[Point]:
    """Made once in each process, however many of its runs it plays."""
    if text not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[text] = Experiment.from_toml(text).points()
    return _KNOWN[text]


_KNOWN: dict[str, list[Point]] = {}


def _nested(key: str, value: Any) -> Table:
    *outer, last = key.split(".")
    table: Table = {last: value}
    for name in reversed(outer):
        table = {name: table}
    return table


def _merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> Table:
    merged = dict(table)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _plain(value: Any) -> Any:
    """Without what was not given: TOML has no word for it."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return list(value) if isinstance(value, tuple) else value
