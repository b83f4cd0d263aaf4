"""The checker of total order against variants of EpTO that are wrong on purpose, played by the simulator.

Where too little is thrown, or too early is called stable, there are holes and nothing else. Where ties are not told
apart, as in the printed algorithm, there are inversions. The protocol as it is has neither on the same scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import pytest

from epicast.core.records import Level
from epicast.dissemination.ball_clock import GlobalClock, LogicalClock
from epicast.dissemination.ball_keys import timestamp_of
from epicast.ordering.stable import Pending, StableOrder
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import Verdict, judge
from epicast.pipeline.kernel import RunFacts
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.run import RunFolder

GRAIN_US = 25_000  # of a clock on which events of several processes have the same time
CLOCKS = ("global", "logical")


def judged(folder: Path, clock: str, **balls: Any) -> dict[str, Verdict]:
    """Every second process publishes in each round, for twenty rounds."""
    scenario = {
        "stack": "epto",
        "overrides": {"dissemination": {"clock": clock, "drift": 0.1, **balls}},
        "nodes": 60,
        "latency": "quantiles planetlab-epto",
        "network": {"transport": "datagram"},
        "warmup": "5s",
        "drain": "5s",
        "workload": {
            "pattern": "poisson",
            "messages": 600,
            "rate": 240,
            "payload_bytes": 10,
            "sources": 60,
            "source_order": "random",
        },
    }
    play_into(folder, World(Scenario.load(scenario), 1, level=Level.DELIVERIES), [])
    run = RunFolder.open(folder).require_complete()
    facts = RunFacts.of(run.info)
    with DuckKernel(run) as kernel:
        tables.define(kernel, facts)
        return {verdict.guarantee: verdict for verdict in judge(kernel, facts)}


def holes_and_inversions(found: Mapping[str, Verdict]) -> tuple[int, int]:
    numbers = found["total"].numbers
    return numbers["holes"], numbers["inversions"]


class TimestampsOnly(StableOrder):
    """Both guards as printed (E-E5): they compare times, and sources count only among what is given out together."""

    __slots__ = ()

    def release(self, born_before: int, may_wait: Callable[[Pending], bool] | None = None) -> None:
        left = {}
        for name, line in self.lines.items():
            waiting = [self.pending[key] for key in sorted(line.heap)]
            queued = min([timestamp_of(each.key) for each in waiting if each.birth >= born_before], default=inf)
            going = [each.key for each in waiting if each.birth < born_before and timestamp_of(each.key) <= queued]
            left[name] = [each.key for each in waiting if each.key not in going]
            line.heap[:] = going
        super().release(born_before, may_wait)
        for name, keys in left.items():
            line = self.lines[name]
            line.heap[:] = keys
            line.last = line.last[:8]  # its time alone: whatever has the same time is taken


def coarse_time(clock: GlobalClock) -> int:
    time_us = clock.env.calendar_us() // GRAIN_US * GRAIN_US
    clock.highest = max(clock.highest, time_us)
    return time_us


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_protocol_as_it_is_leaves_neither_holes_nor_inversions(
    clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GlobalClock, "take", coarse_time)
    found = judged(tmp_path, clock)
    assert holes_and_inversions(found) == (0, 0)
    assert found["total"].checked == 600
    assert not any(verdict.broken for verdict in found.values())


@pytest.mark.parametrize("clock", CLOCKS)
def test_guards_that_compare_times_alone_make_inversions(
    clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GlobalClock, "take", coarse_time)
    monkeypatch.setattr("epicast.ordering.epto.StableOrder", TimestampsOnly)
    found = judged(tmp_path, clock)
    holes, inversions = holes_and_inversions(found)
    assert inversions > 0
    assert holes == 0
    assert found["total"].broken
    assert "the other way round" in found["total"].findings[0].what


@pytest.mark.parametrize("clock", CLOCKS)
def test_balls_thrown_at_too_few_make_holes_and_no_inversions(clock: str, tmp_path: Path) -> None:
    found = judged(tmp_path, clock, fanout=3, rounds=5)
    holes, inversions = holes_and_inversions(found)
    assert holes > 0
    assert (inversions, found["total"].violations) == (0, 0)
    assert holes == found["agreement"].violations


def test_what_is_called_stable_too_early_makes_holes_and_no_inversions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logical clocks with the patience that suffices for a global one, and rounds shorter than messages take."""
    monkeypatch.setattr(LogicalClock, "stable_after", 1)
    found = judged(tmp_path, "logical", period="20ms")
    holes, inversions = holes_and_inversions(found)
    assert holes > 0
    assert (inversions, found["total"].violations) == (0, 0)
