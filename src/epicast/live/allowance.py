"""How many messages about membership a peer may send.

They are rare: a keep-alive a second, a walk now and then, some dozens while many join. Most make us send others, so a
flood of them would spread through the cluster. What is above the rate and the burst is dropped; the time that dropping
takes is counted by `effort.py`.
"""

from __future__ import annotations

PER_SECOND = 100
BURST = 500


class Allowance:
    __slots__ = ("_left", "_since_us")

    def __init__(self) -> None:
        self._left = float(BURST)
        self._since_us = 0

    def take(self, now_us: int) -> bool:
        """May one more be handled?"""
        left = min(BURST, self._left + (now_us - self._since_us) * (PER_SECOND / 1e6))
        self._since_us = now_us
        if left < 1:
            self._left = left
            return False
        self._left = left - 1
        return True
