"""Some of those that wait, the one of lowest rank first. Who has left the room is dropped when it comes to the top."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import Generic

from epicast.ordering.waiting import H

SLACK = 64  # entries of those who have left, before they are looked for


class Ranked(Generic[H]):
    __slots__ = ("_heap", "_pushed", "_room")

    def __init__(self, room: Collection[H]) -> None:
        self._room = room
        self._heap: list[tuple[int, int, H]] = []
        self._pushed = 0  # equals are in the order of their coming

    def push(self, rank: int, held: H) -> None:
        if len(self._heap) > 2 * len(self._room) + SLACK:
            self._heap = [entry for entry in self._heap if entry[2] in self._room]
            heapify(self._heap)
        self._pushed += 1
        heappush(self._heap, (rank, self._pushed, held))

    def first(self) -> tuple[int, H] | None:
        """With its rank."""
        heap = self._heap
        while heap:
            rank, _, held = heap[0]
            if held in self._room:
                return rank, held
            heappop(heap)
        return None

    def pop(self) -> None:
        heappop(self._heap)
