"""When the hub writes what it was given."""

import asyncio
from collections.abc import Iterable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from epicast.live.config import Limits
from epicast.live.effort import BURST_NS, TURN_NS, Effort
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


class Busy(Relay):
    """A driver that needs half a millisecond for each message, by clocks of its own. Other processes may have the
    processor for longer meanwhile."""

    def __init__(self, patch: pytest.MonkeyPatch, *, upkeep: bool, others_ns: int = 0) -> None:
        super().__init__()
        self.upkeep, self.others_ns = upkeep, others_ns
        self.clock_ns, self.worked_ns = 1_000_000_000_000, 0
        patch.setattr("epicast.live.hub.monotonic_ns", lambda: self.clock_ns)
        patch.setattr("epicast.live.hub.thread_time_ns", lambda: self.worked_ns, raising=False)

    def message(self, conn: Any, body: bytes) -> bool:
        self.worked_ns += 500_000
        self.clock_ns += 500_000 + self.others_ns
        self.notes.append(body.decode())
        return self.upkeep


class Peer(SimpleNamespace):
    """A connection."""

    def __init__(self, peer: str) -> None:
        super().__init__(closing=False, reason="", peer=peer, used_us=0, todo=[], resting=False, effort=Effort())
        self.waits: list[Any] = []

    def wait_for(self, other: Any) -> None:
        self.waits.append(other)

    def no_longer_wait_for(self, other: Any) -> None:
        self.waits = [each for each in self.waits if each != other]


def test_who_sends_much_does_not_keep_others_from_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        driver = Busy(monkeypatch, upkeep=False)
        hub = driver.hub = make_hub(driver)
        busy, other = Peer("busy"), Peer("other")
        hub.received(cast(Any, busy), [b"busy"] * 100)
        assert len(driver.notes) * 500_000 <= TURN_NS + 500_000
        assert busy.waits, "nothing more is read from it"
        hub.received(cast(Any, other), [b"other"])
        assert driver.notes[-1] == "other"
        while busy.waits:
            await asyncio.sleep(0)
        assert driver.notes.count("busy") == 100
        hub._watch.cancel()
        hub.congestion.close()

    asyncio.run(body())


def test_what_is_read_in_one_go_is_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops may read from one connection many times before they look at the next one."""

    async def body() -> None:
        driver = Busy(monkeypatch, upkeep=False)
        hub = driver.hub = make_hub(driver)
        busy = Peer("busy")
        for _ in range(100):
            if not busy.waits:
                hub.received(cast(Any, busy), [b"busy"])
        assert len(driver.notes) * 500_000 <= TURN_NS + 500_000
        hub._watch.cancel()
        hub.congestion.close()

    asyncio.run(body())


def test_upkeep_without_credit_is_rested_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        driver = Busy(monkeypatch, upkeep=True)
        hub = driver.hub = make_hub(driver)
        busy = Peer("busy")
        hub.received(cast(Any, busy), [b"busy"] * 1000)
        while hub.counters["peers held back"] == 0:
            await asyncio.sleep(0)
        assert len(driver.notes) * 500_000 <= BURST_NS + TURN_NS + 500_000
        for _ in range(10):  # by the driver's clock no time passes, so it rests for as long as we look
            await asyncio.sleep(0)
        assert len(driver.notes) * 500_000 <= BURST_NS + TURN_NS + 500_000
        hub._watch.cancel()
        hub.congestion.close()

    asyncio.run(body())


def test_a_peer_is_not_held_back_for_the_time_of_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        driver = Busy(monkeypatch, upkeep=True, others_ns=BURST_NS)
        hub = driver.hub = make_hub(driver)
        honest = Peer("honest")
        hub.received(cast(Any, honest), [b"honest"] * 10)
        for _ in range(100):
            await asyncio.sleep(0)
        assert hub.counters["peers held back"] == 0
        assert len(driver.notes) == 10
        hub._watch.cancel()
        hub.congestion.close()

    asyncio.run(body())


def test_what_passes_through_is_written_before_it_is_delivered() -> None:
    assert relayed(0, 1, 2) == ["wrote 1", "delivered 3"]


def test_what_comes_together_is_written_together() -> None:
    assert relayed(0, 1, 5, 6) == ["delivered 2", "wrote 2", "delivered 2"]
