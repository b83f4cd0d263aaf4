"""Measures two versions of epicast in turn: live nodes, or whole simulations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from epicast.cli.benchmarks import against_report
from epicast.cli.benchmarks.against import (
    NEW,
    OLD,
    Environment,
    Pair,
    Play,
    Sample,
    Tell,
    Versions,
    alternate,
    require_alike,
    run_module,
)
from epicast.cli.benchmarks.against_engine import LARGE, RUNS, Run, Used
from epicast.cli.benchmarks.live_job import SIGNED, Job
from epicast.cli.benchmarks.live_pair import measure_pair
from epicast.cli.benchmarks.live_plan import make_plan
from epicast.cli.benchmarks.live_systems import BY_TCP, BY_TLS, OURS, VARIANTS, WITH_KEYS
from epicast.core.errors import EpicastError

OURS_AND_VARIANTS = (OURS, *VARIANTS)
LIVE = (OURS, *WITH_KEYS)
KINDS = {OURS: "plain", BY_TCP: "by TCP", BY_TLS: "TLS", SIGNED: "TLS and signatures"}


class LiveCell(NamedTuple):
    """A job of the ordinary benchmark, at full speed only."""

    job: Job

    @property
    def kind(self) -> str:
        return KINDS[self.job.system]

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.job.cell}"


def compare_live(python: str, systems: list[str], rounds: int, tell: Tell, *, quick: bool) -> dict[str, Any]:
    if foreign := [system for system in systems if system not in OURS_AND_VARIANTS]:
        raise EpicastError(f"--systems: with --against there are {', '.join(OURS_AND_VARIANTS)}; got {foreign[0]}")
    plan = make_plan(systems or LIVE, rounds, quick=quick)
    if plan.missing:
        raise EpicastError("; ".join(plan.missing.values()))
    return _compare([LiveCell(job) for job in plan.jobs()], python, rounds, _play_live, tell)


def _play_live(cell: Any, versions: Versions) -> Pair:
    assert isinstance(cell, LiveCell)
    return measure_pair({name: replace(cell.job, python=version.python) for name, version in versions.items()})


def compare_engine(python: str, rounds: int, tell: Tell, *, quick: bool) -> dict[str, Any]:
    return _compare([*RUNS, *(() if quick else (LARGE,))], python, rounds, _play_engine, tell)


def _play_engine(cell: Any, versions: Versions) -> Pair:
    assert isinstance(cell, Run)
    return {name: _simulate(cell, version) for name, version in versions.items()}


def _simulate(run: Run, version: Environment) -> Sample:
    try:
        said = run_module(version.python, "against_engine", msgspec.json.encode(run).decode())
    except EpicastError as error:
        return Sample(None, str(error))
    used = msgspec.json.decode(said, type=Used)
    return Sample(used.cpu_seconds * 1e6 / used.deliveries) if used.deliveries else Sample(None, "nothing delivered")


def _compare(cells: Sequence[Any], python: str, rounds: int, play: Play, tell: Tell) -> dict[str, Any]:
    versions = {NEW: Environment.ours(), OLD: Environment.of(python)}
    require_alike(versions[NEW], versions[OLD])
    return against_report.as_dict(cells, versions, rounds, alternate(cells, versions, rounds, play, tell))
