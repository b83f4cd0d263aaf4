"""When the hub writes what it was given, and whom it takes for slow."""

import asyncio
from collections.abc import Iterable
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from epicast.live.config import Limits
from epicast.live.connection import Watch
from epicast.live.hello import Hello
from epicast.live.hub import Hub
from epicast.live.sending import Link
from epicast.wire.frames import FrameReader, event_frame

PEER = "127.0.0.1:2/peer"


class Relay:
    """A driver that hands every run on and delivers it, and notes what happens when."""

    def __init__(self) -> None:
        self.hub: Hub
        self.notes: list[str] = []
        self.onward = SimpleNamespace(flush=self._written)  # a connection
        self.waiting = 0  # runs that were sent and not written yet

    def _written(self) -> None:
        self.notes.append(f"wrote {self.waiting}")
        self.waiting = 0

    def run(self, conn: Any, run: Iterable[bytes]) -> None:
        if not self.waiting:
            self.hub.flush_later(cast(Any, self.onward))
        self.waiting += 1
        self.hub.handed_on()
        self.notes.append(f"delivered {len(list(run))}")

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
        conn = SimpleNamespace(closing=False, reason="", peer=PEER, used_us=0, todo=[])
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


class Peer:
    """A connection behind which so much waits."""

    peer, closing, paused, valid_until_s, used_us, reason = PEER, False, False, inf, 0, ""

    def __init__(self) -> None:
        self.watch = Watch()
        self.waiting_bytes = self.taken_bytes = 0

    def cut(self, reason: str) -> None:
        self.reason = reason


def looked_at(*seconds: int) -> str:
    """Why a peer is cut behind which two megabytes wait at these seconds and nothing in between; it takes some of it
    every time."""

    async def body() -> str:
        now_us = 0
        hub = make_hub(SimpleNamespace(now_us=lambda: now_us))
        peer = Peer()
        link = hub.links[PEER] = Link(PEER)
        link.conn, link.held = cast(Any, peer), True
        for second in range(max(seconds) + 1):
            now_us = second * 1_000_000
            peer.waiting_bytes = 2_000_000 if second in seconds else 0
            peer.taken_bytes += 1
            hub._watch.cancel()
            hub._look()
        hub._watch.cancel()
        hub.congestion.close()
        return peer.reason

    return asyncio.run(body())


def test_who_is_behind_for_long_is_slow() -> None:
    assert looked_at(*range(10)) == "slow peer: 2,000,000 bytes behind for 8 s"


def test_who_is_behind_now_and_then_is_not_slow() -> None:
    assert looked_at(0, 1, 10, 11, 30) == ""


def stuck(*, takes: bool, says: bool, waiting: int = 1000) -> list[bool]:
    """Is a peer taken for stuck, at every half second?"""
    watch, found = Watch(), []
    for now_us in range(0, 3_000_000, 500_000):
        watch.look(now_us, now_us if says else 0, now_us if takes else 0, waiting, Limits())
        found.append(watch.stuck)
    return found


def test_who_neither_takes_nor_says_anything_is_stuck() -> None:
    assert stuck(takes=False, says=False) == [False, False, False, True, True, True]
    assert not any(stuck(takes=True, says=False))
    assert not any(stuck(takes=False, says=True))
    assert not any(stuck(takes=False, says=False, waiting=0))


def test_who_was_away_itself_does_not_take_others_for_stuck_at_once() -> None:
    watch = Watch()
    watch.look(0, 0, 5, 1000, Limits())
    watch.look(60_000_000, 0, 5, 1000, Limits(stall_us=300_000_000))
    assert not watch.stuck
