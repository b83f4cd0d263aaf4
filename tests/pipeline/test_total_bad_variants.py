"""The checker of total order against variants of EpTO that are wrong on purpose, played by the simulator.

Where too little is thrown, or too early is called stable, there are holes and nothing else. Where ties are not told
apart, as in the printed algorithm, there are inversions. The protocol as it is has neither on the same scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import pytest

from epicast.core.records import Level
from epicast.dissemination.ball_clock import GlobalClock, LogicalClock
from epicast.dissemination.ball_keys import timestamp_of
from epicast.ordering.stable import StableOrder
from epicast.pipeline.guarantees import Verdict
from tests.pipeline.measured import judged, simulated

GRAIN_US = 25_000  # of a clock on which events of several processes have the same time
CLOCKS = ("global", "logical")


def played(folder: Path, **scenario: Any) -> dict[str, Verdict]:
    scenario |= {"seed": 1, "network": {"transport": "datagram"}, "drain": "5s"}
    scenario["workload"] |= {"pattern": "poisson", "source_order": "random", "payload_bytes": 10}
    return judged(simulated(folder, Level.DELIVERIES, **scenario))


def busy(folder: Path, clock: str, **balls: Any) -> dict[str, Verdict]:
    """Every second process publishes in each round, for twenty rounds."""
    return played(
        folder,
        stack="epto",
        overrides={"dissemination": {"clock": clock, "drift": 0.1, **balls}},
        nodes=60,
        latency="quantiles planetlab-epto",
        workload={"messages": 600, "rate": 240, "sources": 60},
    )


def holes_and_inversions(found: Mapping[str, Verdict]) -> tuple[int, int]:
    numbers = found["total"].numbers
    return numbers["holes"], numbers["inversions"]


class TimestampsOnly(StableOrder):
    """Both guards as printed (E-E5): they compare times, and sources count only among what is given out together."""

    __slots__ = ()

    def release(self, born_before: int, patience: int = 0) -> None:
        left = {}
        for name, line in self.lines.items():
            waiting = [self.pending[key] for key in sorted(line.heap)]
            queued = min(
                [timestamp_of(each.key) for each in waiting if self.births[each.key] >= born_before], default=inf
            )
            going = [
                each.key for each in waiting if self.births[each.key] < born_before and timestamp_of(each.key) <= queued
            ]
            left[name] = [each.key for each in waiting if each.key not in going]
            line.heap[:] = going
        super().release(born_before, patience)
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
    found = busy(tmp_path, clock)
    assert holes_and_inversions(found) == (0, 0)
    assert found["total"].checked == 600
    assert not any(verdict.broken for verdict in found.values())


@pytest.mark.parametrize("clock", CLOCKS)
def test_guards_that_compare_times_alone_make_inversions(
    clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GlobalClock, "take", coarse_time)
    monkeypatch.setattr("epicast.ordering.epto.StableOrder", TimestampsOnly)
    found = busy(tmp_path, clock)
    holes, inversions = holes_and_inversions(found)
    assert inversions > 0
    assert holes == 0
    assert found["total"].broken
    assert "the other way round" in found["total"].findings[0].what


@pytest.mark.parametrize("clock", CLOCKS)
def test_balls_thrown_at_too_few_make_holes_and_no_inversions(clock: str, tmp_path: Path) -> None:
    found = busy(tmp_path, clock, fanout=3, rounds=5)
    holes, inversions = holes_and_inversions(found)
    assert holes > 0
    assert (inversions, found["total"].violations) == (0, 0)
    assert holes == found["agreement"].violations


@pytest.mark.parametrize(("ttl", "has_holes"), [(3, True), (4, False)])
def test_a_ttl_one_below_the_bound_makes_holes_and_no_inversions(ttl: int, has_holes: bool, tmp_path: Path) -> None:
    """Two processes, a global clock: all is well if rounds take delay / (TTL - 1), so with three rounds to a delay from
    TTL 4 on (document 000, section 5.2.6)."""
    found = played(
        tmp_path,
        stack={
            "membership": {"protocol": "static"},
            "dissemination": {"protocol": "balls", "clock": "global", "fanout": 1, "rounds": ttl, "period": "30ms"},
            "ordering": {"protocol": "epto"},
        },
        nodes=2,
        joins={"degree": 1},
        latency="constant 90ms",
        workload={"messages": 300, "rate": 60, "sources": 2},
    )
    holes, inversions = holes_and_inversions(found)
    assert (holes > 0) == has_holes
    assert (inversions, found["total"].violations) == (0, 0)


def test_what_is_called_stable_too_early_makes_holes_and_no_inversions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logical clocks with the patience that suffices for a global one, and rounds shorter than messages take."""
    monkeypatch.setattr(LogicalClock, "stable_after", 1)
    found = busy(tmp_path, "logical", period="20ms")
    holes, inversions = holes_and_inversions(found)
    assert holes > 0
    assert (inversions, found["total"].violations) == (0, 0)
