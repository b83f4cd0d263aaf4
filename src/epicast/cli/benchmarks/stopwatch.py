"""Measures the time of a piece of work, with the garbage of the set-up out of its way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time


class Stopwatch:
    seconds = 0.0
    cpu_seconds = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    gc.collect()
    gc.freeze()
    wall, cpu = perf_counter(), process_time()
    yield watch
    watch.seconds, watch.cpu_seconds = perf_counter() - wall, process_time() - cpu
