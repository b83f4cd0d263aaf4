"""Who takes part in a run, since when, and how each one ended.

Processes are numbered in the order in which they join, so the times of joining never go down.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

import numpy as np

from epicast.trace.batch import Int64s

Ending = Literal["leave", "crash"]


class Population:
    def __init__(self) -> None:
        self.up: list[int] = []  # in ascending order; those that have begun to leave are not among them
        self.joined_us: list[int] = []
        self.ended_us: list[int] = []  # -1: has not ended
        self.how: list[Ending | Literal[""]] = []

    def __len__(self) -> int:
        """How many ever joined."""
        return len(self.joined_us)

    def joins(self, node: int, now_us: int) -> None:
        assert node == len(self.joined_us) and (not self.joined_us or self.joined_us[-1] <= now_us)
        self.up.append(node)
        self.joined_us.append(now_us)
        self.ended_us.append(-1)
        self.how.append("")

    def leaves(self, node: int) -> bool:
        """It is no longer among those that are up; False if it was not."""
        at = bisect_left(self.up, node)
        if at == len(self.up) or self.up[at] != node:
            return False
        del self.up[at]
        return True

    def ends(self, node: int, now_us: int, how: Ending) -> None:
        self.leaves(node)
        self.ended_us[node] = now_us
        self.how[node] = how

    def joined_by(self, times_us: Int64s) -> Int64s:
        """How many had joined at each of these times: the processes with lower numbers."""
        return np.searchsorted(np.array(self.joined_us, np.int64), times_us, side="right").astype(np.int64)

    def up_mask(self) -> np.typing.NDArray[np.bool_]:
        """By number."""
        mask = np.zeros(len(self), np.bool_)
        mask[self.up] = True
        return mask
