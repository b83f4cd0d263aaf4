"""How many messages about membership a peer may send.

They are rare: a keep-alive a second, a walk now and then, some dozens while many join. Most make us send others, so a
flood of them would spread through the cluster. What is above the rate and the burst is dropped, and a peer that goes on
is read from more slowly: dropping takes time too.
"""

from __future__ import annotations

PER_SECOND = 100
BURST = 500
REST_AFTER = 256  # dropped messages
REST_S = 0.01


class Allowance:
    __slots__ = ("_dropped", "_left", "_since_us")

    def __init__(self) -> None:
        self._left = float(BURST)
        self._since_us = 0
        self._dropped = 0

    def take(self, now_us: int) -> bool:
        """May one more be handled?"""
        left = min(BURST, self._left + (now_us - self._since_us) * (PER_SECOND / 1e6))
        self._since_us = now_us
        if left < 1:
            self._left = left
            return False
        self._left = left - 1
        return True

    def dropped(self) -> float:
        """For how many seconds nothing is to be read from the peer."""
        self._dropped += 1
        return 0.0 if self._dropped % REST_AFTER else REST_S
