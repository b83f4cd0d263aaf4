"""Sparing the garbage collector: what a world is made of lives long, and hardly anything in it forms cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A collection looks at all young objects; by default one starts every 700 of them.
THRESHOLDS = (100_000, 20, 100)


LARGE = 2_000  # processes


@contextmanager
def collector_at_rest(nodes: int) -> Iterator[None]:
    """Collections are rare until the block ends; and in a large world what exists now is left alone. For a small one
    that would cost more than it saves: it takes a look at all there is, also at what is not of this world."""
    before, large = gc.get_threshold(), nodes >= LARGE
    if large:
        gc.collect()
        gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if large:
            gc.unfreeze()
