"""Ctrl-C asks a run to end in good order; a second one ends it at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """While inside, the first interrupt calls `stop` instead of raising, unless someone else handles interrupts."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    try:
        signal.signal(signal.SIGINT, first)
    except ValueError:  # not in the main thread, where interrupts do not arrive
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
