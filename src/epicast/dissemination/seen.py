"""Which events of each source are over: delivered, or given up. No number is forgotten, however long ago it came.

A process that stood still, because its machine slept say, throws the events of its time when it wakes. They are told
from new ones by their numbers, a window for each source (`core/window.py`), which costs no memory where nothing lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from epicast.core.ids import NodeId
from epicast.core.window import SeqWindow

STREAM_BITS = 40  # of a number are those within its stream

Begin = Callable[[NodeId, int, int], SeqWindow]
"""Makes the window of a source that is met with this number; the last argument is the window's cap."""


def begin_here(source: NodeId, seq: int, cap: int) -> SeqWindow:
    """Nobody has said where the source began for us: perhaps with this number, perhaps lower ones are on their way."""
    return SeqWindow(seq, cap, provisional=seq > 0)


def none_held(source: NodeId) -> Collection[int]:
    """Whatever comes is over at once."""
    return ()


def ignore(source: NodeId, window: SeqWindow) -> None:
    """Nobody wants to know about holes."""


class Seen:
    """`windows` has those of first streams. Some disseminators begin another stream of numbers for each of their flows,
    with the flow in the upper bits."""

    __slots__ = ("_ahead_max", "_sources_max", "_streams", "begin", "held", "on_hole", "pulls", "windows")

    def __init__(self, sources_max: int, ahead_max: int) -> None:
        self._ahead_max, self._sources_max = ahead_max, sources_max
        self.windows: dict[NodeId, SeqWindow] = {}
        self._streams: dict[tuple[NodeId, int], SeqWindow] = {}
        self.pulls = False  # balls send nothing again
        self.begin: Begin = begin_here
        self.held: Callable[[NodeId], Collection[int]] = none_held  # numbers that came, and wait for their turn
        self.on_hole: Callable[[NodeId, SeqWindow], None] = ignore  # numbers lack below the one that was added

    def holds(self, source: NodeId, seq: int) -> bool:
        stream = seq >> STREAM_BITS
        window = self._streams.get((source, stream)) if stream else self.windows.get(source)
        return window is not None and seq in window

    def add(self, source: NodeId, seq: int) -> bool:
        """True if the number is new."""
        if seq >> STREAM_BITS:
            return self._add_to_stream((source, seq >> STREAM_BITS), seq)
        window = self.windows.get(source)
        if window is None:
            self._make_room(self.windows)
            window = self.windows[source] = self.begin(source, seq, self._ahead_max)
        if seq == window.next and not window.ahead:
            window.next += 1
            return True
        if not window.add(seq):
            return False
        self.on_hole(source, window)
        return True

    def _add_to_stream(self, key: tuple[NodeId, int], seq: int) -> bool:
        window = self._streams.get(key)
        if window is None:
            self._make_room(self._streams)
            window = self._streams[key] = SeqWindow(seq, self._ahead_max, provisional=True)
        return window.add(seq)

    def _make_room(self, windows: dict[Any, SeqWindow]) -> None:
        if len(windows) >= self._sources_max:
            del windows[next(iter(windows))]  # the one met first
