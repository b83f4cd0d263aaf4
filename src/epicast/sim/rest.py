"""Sparing the garbage collector: what a world is made of lives long, and hardly anything in it forms cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A collection looks at all young objects; by default one starts every 700 of them.
THRESHOLDS = (100_000, 20, 100)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """What exists now is left alone, and collections are rare, until the block ends."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
