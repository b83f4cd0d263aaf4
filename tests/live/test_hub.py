"""When the hub writes what it was given."""

import asyncio
from collections.abc import Iterable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from epicast.live.config import Limits
from epicast.live.effort import Effort
from epicast.live.hello import Hello
from epicast.live.hub import Hub
from epicast.wire.frames import FrameReader, event_frame

PEER = "127.0.0.1:2/peer"


class Relay:
    """A driver that hands every run on and delivers it, and notes what happens when."""

    def __init__(self) -> None:
        self.hub: Hub
        self.notes: list[str] = []
        self.onward = SimpleNamespace(flush=self._written, closing=False)  # a connection
        self.waiting = 0  # runs that were sent and not written yet

    def _written(self) -> None:
        self.notes.append(f"wrote {self.waiting}")
        self.waiting = 0

    def run(self, conn: Any, run: Iterable[bytes], over_ns: int) -> tuple[None, bool]:
        if not self.waiting:
            self.hub.flush_later(cast(Any, self.onward))
        self.waiting += 1
        self.hub.handed_on()
        self.notes.append(f"delivered {len(list(run))}")
        return None, False

    def alive(self, peer: str) -> None:
        pass

    def now_us(self) -> int:
        return 0


def make_hub(driver: Any) -> Hub:
    door = SimpleNamespace(counters=None)
    greeting = Hello("epicast", 1, "cluster", "stack", "127.0.0.1:1/me")
    return Hub(asyncio.get_running_loop(), driver, greeting, cast(Any, door), Limits(), Random(1))


def relayed(*numbers: int) -> list[str]:
    """What a relay does with events of these numbers that come together."""

    async def body() -> list[str]:
        relay = Relay()
        hub = relay.hub = make_hub(relay)
        conn = SimpleNamespace(closing=False, reason="", peer=PEER, used_us=0, resting=False, effort=Effort())
        frames = FrameReader(1000).feed(b"".join(event_frame(7, number, b"x") for number in numbers))
        hub.received(cast(Any, conn), frames)
        hub._watch.cancel()
        hub.congestion.close()
        return relay.notes

    return asyncio.run(body())


def test_what_passes_through_is_written_before_it_is_delivered() -> None:
    assert relayed(0, 1, 2) == ["wrote 1", "delivered 3"]


def test_what_comes_together_is_written_together() -> None:
    assert relayed(0, 1, 5, 6) == ["delivered 2", "wrote 2", "delivered 2"]
