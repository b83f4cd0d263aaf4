"""Measures the time of a piece of work, with the garbage of the set-up out of its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time

from epicast.sim.rest import LARGE, collector_at_rest


class Stopwatch:
    seconds = 0.0
    cpu_seconds = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    with collector_at_rest(LARGE):  # as in any large run of the simulator; SimPy gets the same
        wall, cpu = perf_counter(), process_time()
        yield watch
        watch.seconds, watch.cpu_seconds = perf_counter() - wall, process_time() - cpu
