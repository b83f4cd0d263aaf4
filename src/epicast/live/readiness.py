"""Whether a node has joined: what it publishes from then on reaches others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from epicast.core.errors import EpicastError

LOOK_S = 0.1


class Readiness:
    def __init__(self, joined: Callable[[], bool]) -> None:
        self.joined = joined
        self._changed = asyncio.Event()

    def look(self) -> None:
        """A link came or went."""
        self._changed.set()

    async def wait(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not self.joined():
                    self._changed.clear()
                    with suppress(TimeoutError):  # a membership without links does not tell
                        await asyncio.wait_for(self._changed.wait(), LOOK_S)
        except TimeoutError:
            raise EpicastError(
                f"nobody let us in within {timeout_s:g} s: is a seed running and of the same cluster?"
            ) from None
