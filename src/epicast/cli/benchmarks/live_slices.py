"""Latency is measured in slices of a second, and only in those in which the machine was there.

On a virtual machine the host takes the processors away now and then, for a tenth of a second and more. Who sends at
such a moment is late whatever it does, and a single one decides a 99th percentile over a few seconds. The system counts
the time that was taken. A slice that lost too much of it is left out, whatever was measured in it, and another one is
taken instead: of so many at most, then the least disturbed ones have to do.

Machines have other such moments that nobody counts, of some 50 ms each. So what the 99th percentile of a typical slice
is, the median of all, is told as well. It hides what a system does to itself once in a while: targets are judged by the
99th percentile of all slices together.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple

from epicast.cli.benchmarks.live_lines import Done, Published
from epicast.cli.benchmarks.live_processes import stolen_seconds

SLICE_S = 1.0
STOLEN_MAX = 0.01  # part of a slice's processor time: our guess, some single ticks of the clock
TRIES = 4  # for each slice that is wanted


class Phase(NamedTuple):
    """What was published and received between two orders to the publisher."""

    published: Published
    done: list[Done]

    @property
    def received(self) -> int:
        return sum(each.received for each in self.done)

    def lost(self, subscribers: int) -> int:
        return self.published.messages * subscribers - self.received

    def latencies_us(self) -> list[int]:
        return [latency for each in self.done for latency in each.latencies_us]


class Slice(NamedTuple):
    phase: Phase
    stolen: float  # part of the processor time


class Slices(NamedTuple):
    taken: list[Slice]
    chosen: list[Slice]

    @property
    def phases(self) -> list[Phase]:
        """Of all: what is lost in any of them is lost."""
        return [each.phase for each in self.taken]

    @property
    def stolen(self) -> float:
        return sum(each.stolen for each in self.chosen) / len(self.chosen)

    @property
    def left_out(self) -> int:
        return len(self.taken) - len(self.chosen)


async def in_slices(play: Callable[[int, float], Awaitable[Phase]], seconds: float) -> Slices:
    """`play` is told which slice it is and how many seconds it lasts."""
    wanted, length = max(1, round(seconds / SLICE_S)), min(SLICE_S, seconds)
    taken: list[Slice] = []
    while len(taken) < TRIES * wanted and sum(each.stolen <= STOLEN_MAX for each in taken) < wanted:
        before, started = stolen_seconds(), monotonic()
        phase = await play(len(taken), length)
        capacity = (monotonic() - started) * (os.cpu_count() or 1)
        taken.append(Slice(phase, (stolen_seconds() - before) / capacity))
    return Slices(taken, sorted(taken, key=lambda each: each.stolen)[:wanted])
