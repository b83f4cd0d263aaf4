"""Who waits for whom, and until when; whom it is no use to wait for."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.live.config import Limits
from epicast.live.congestion import Congestion
from epicast.live.connection import Connection
from epicast.live.pace import LOOK_EVERY_US, Pace


class Pipe:
    """A transport whose other end takes bytes when the test says so; it holds its writer back as asyncio's do."""

    def __init__(self) -> None:
        self.conn: Connection
        self.size = self.high = self.low = 0
        self.full = False

    def set_write_buffer_limits(self, high: int) -> None:
        self.high, self.low = high, high // 4

    def get_extra_info(self, name: str) -> Any:
        return ("10.0.0.1", 1) if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return self.size

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self.high and not self.full:
            self.full = True
            self.conn.pause_writing()

    def take(self, count: int) -> None:
        self.size = max(0, self.size - count)
        if self.full and self.size <= self.low:
            self.full = False
            self.conn.resume_writing()


class Desk:
    """What a connection wants of its hub."""

    batch = None

    def __init__(self, limits: Limits) -> None:
        self.limits, self.high_bytes = limits, limits.peer_queue_high_bytes
        loop: Any = None  # nobody awaits anything here
        self.congestion = Congestion(loop, limits, list, self.cut)
        self.unwritten: list[Connection] = []

    def cut(self, conn: Connection, reason: str) -> None:
        raise AssertionError(reason)

    def connected(self, conn: Connection) -> None: ...

    def flush_later(self, conn: Connection) -> None:
        self.unwritten.append(conn)

    def busy(self, conn: Connection) -> None:
        self.congestion.busy(conn, None)

    def drained(self, conn: Connection) -> None:
        self.congestion.drained(conn)


def connected(high: int, **limits: int) -> tuple[Desk, Connection, Pipe]:
    desk: Any = Desk(Limits(peer_queue_high_bytes=high, **limits))
    conn, pipe = Connection(desk, dialled=True), Pipe()
    pipe.conn = conn
    conn.connection_made(pipe)
    return desk, conn, pipe


@pytest.mark.parametrize("high", [1024, 16_384, 262_144, 1 << 20])
@given(steps=st.lists(st.tuples(st.integers(1, 300_000), st.integers(1, 400_000)), max_size=30))
def test_nobody_waits_for_a_peer_that_has_taken_all(high: int, steps: list[tuple[int, int]]) -> None:
    desk, conn, pipe = connected(high)
    for sent, taken in steps:
        if not desk.congestion:  # publishers wait
            conn.send(bytes(sent))
        conn.flush()
        pipe.take(taken)
    for _ in range(10_000):
        if not pipe.size and not conn.waiting_bytes:
            break
        pipe.take(50_000)
    assert not desk.congestion


def test_a_peer_that_takes_nothing_is_waited_for() -> None:
    desk, conn, _ = connected(262_144)
    while not desk.congestion:
        conn.send(bytes(10_000))
    assert conn.waiting_bytes > 262_144


# Who is slow

HIGH, LONG = 1_000_000, 8_000_000  # marks of the queue, and of that of a slow one
SOME = 100_000


class Peer:
    """A connection whose other end takes so many bytes a look of what it is sent."""

    closing = False

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.pace = Pace()
        self.waiting_bytes = self.taken_bytes = self.fed_bytes = self.received_bytes = 0
        self.reason = ""
        self.paused_for: list[Any] = []

    def send(self, size: int) -> None:
        self.waiting_bytes += size

    def feed(self, size: int) -> None:
        self.fed_bytes += size
        self.send(size)

    def take(self) -> None:
        taken = min(self.takes, self.waiting_bytes)
        self.waiting_bytes -= taken
        self.taken_bytes += taken

    def wait_for(self, other: Any) -> None:
        self.paused_for.append(other)

    def no_longer_wait_for(self, other: Any) -> None:
        self.paused_for = [each for each in self.paused_for if each is not other]


class Stream:
    """One that is sent to some peers, as fast as they allow but no faster than `rate` bytes a look."""

    def __init__(self, *peers: Peer, rate: int, feeder: Peer | None = None, **limits: int) -> None:
        self.peers, self.rate, self.feeder = list(peers), rate, feeder
        conns: Any = [*peers, *([feeder] if feeder is not None else [])]
        loop: Any = None
        settings = {"peer_queue_high_bytes": HIGH, "peer_queue_bytes": 8 * LONG, **limits}
        self.congestion = Congestion(loop, Limits(**settings), lambda: conns, self.cut)
        self.now_us = self.held_up = 0

    def cut(self, conn: Any, reason: str) -> None:
        conn.reason, conn.closing = reason, True
        self.congestion.release(conn)

    def goes_on(self, seconds: float, away_us: int = 0) -> None:
        for _ in range(int(seconds * 4)):
            if self.congestion:
                self.held_up += 1
            else:
                self._send()
            for peer in self.peers:
                peer.take()
                self.congestion.drained(cast(Any, peer))
            self.now_us += LOOK_EVERY_US + away_us
            self.congestion.look(self.now_us)

    def _send(self) -> None:
        if self.feeder is not None:
            self.feeder.received_bytes += self.rate
        for peer in self.peers:
            if not peer.closing:
                peer.feed(self.rate)
                if peer.waiting_bytes > HIGH:
                    self.congestion.busy(cast(Any, peer), cast(Any, self.feeder))


def test_one_that_takes_less_than_others_holds_up_nobody_and_is_cut() -> None:
    good, slow = Peer(takes=HIGH), Peer(takes=SOME // 4)
    stream = Stream(good, slow, rate=SOME)
    stream.goes_on(12)
    assert stream.held_up == 0
    assert good.reason == ""
    assert slow.reason.startswith("slow peer: ")
    assert slow.reason.endswith(" bytes behind, and others are not")


def test_a_fast_stream_waits_for_one_that_kept_up_before_it_is_cut() -> None:
    good, slow = Peer(takes=100 * HIGH), Peer(takes=100 * HIGH)
    stream = Stream(good, slow, rate=20 * SOME)
    stream.goes_on(2)
    assert slow.pace.has_kept_up
    slow.takes = SOME
    stream.goes_on(2)
    assert slow.reason == ""
    assert stream.held_up > 0
    assert slow.waiting_bytes <= LONG + stream.rate
    stream.goes_on(4)
    assert slow.reason
    assert not stream.congestion


def test_nobody_waits_for_a_newcomer_that_never_kept_up() -> None:
    good, slow = Peer(takes=100 * HIGH), Peer(takes=SOME)
    stream = Stream(good, slow, rate=20 * SOME)
    stream.goes_on(3)
    assert slow.reason
    assert stream.held_up <= 1


@pytest.mark.parametrize(("more", "seconds"), [(0, 120), (SOME // 10, 60)])
def test_where_all_are_about_as_slow_all_are_waited_for_and_none_is_cut(more: int, seconds: int) -> None:
    """One that is slower by a fifth will be too far behind others after some minutes."""
    peers = [Peer(takes=SOME), Peer(takes=SOME + more), Peer(takes=SOME + 2 * more)]
    stream = Stream(*peers, rate=10 * SOME)
    stream.goes_on(seconds)
    assert [peer.reason for peer in peers] == ["", "", ""]
    assert stream.held_up > seconds
    assert max(peer.waiting_bytes for peer in peers) < LONG


def test_an_only_peer_sets_the_pace() -> None:
    peer, neighbour = Peer(takes=SOME // 10), Peer(takes=HIGH)
    stream = Stream(peer, rate=SOME)
    cast(Any, stream.congestion)._connections().append(neighbour)
    for _ in range(60):
        neighbour.send(300)  # a keep-alive: no stream
        neighbour.take()
        stream.goes_on(1)
    assert peer.reason == ""
    assert stream.held_up > 100


def test_what_is_left_of_a_burst_is_awaited_although_others_have_nothing_to_take() -> None:
    peers, neighbour = [Peer(takes=SOME // 10), Peer(takes=SOME // 10)], Peer(takes=HIGH)
    stream = Stream(*peers, rate=8 * SOME)
    cast(Any, stream.congestion)._connections().append(neighbour)
    stream.goes_on(1)
    stream.rate = 0
    for _ in range(60):
        neighbour.send(3000)
        neighbour.take()
        stream.goes_on(1)
    assert [peer.reason for peer in peers] == ["", ""]
    assert [peer.waiting_bytes for peer in peers] == [0, 0]


def test_a_slow_stream_does_not_wait_for_a_slower_peer_either() -> None:
    good, slow = Peer(takes=HIGH), Peer(takes=500)
    stream = Stream(good, slow, rate=2500)
    stream.goes_on(400)
    assert stream.held_up <= 1
    assert slow.reason


def test_a_relay_does_not_wait_for_its_only_child_if_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "process_time_ns", lambda: 0)  # nothing to do
    child, feeder = Peer(takes=SOME // 4), Peer(takes=HIGH)
    stream = Stream(child, rate=SOME, feeder=feeder)
    stream.goes_on(12)
    assert child.reason
    assert stream.held_up == 0
    assert feeder.paused_for == []


def test_a_relay_that_is_busy_itself_judges_nobody_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_ns = iter(range(0, 1 << 62, LOOK_EVERY_US * 900))
    monkeypatch.setattr(time, "process_time_ns", lambda: next(worked_ns))
    child, feeder = Peer(takes=SOME // 4), Peer(takes=HIGH)
    stream = Stream(child, rate=SOME, feeder=feeder)
    stream.goes_on(60)
    assert child.reason == ""
    assert stream.held_up > 100


def test_one_that_takes_nothing_is_cut() -> None:
    peer = Peer(takes=HIGH)
    stream = Stream(peer, rate=SOME)
    stream.goes_on(5)
    peer.takes = 0
    stream.goes_on(5)
    assert peer.reason == ""
    stream.goes_on(2)
    assert peer.reason == "slow peer: took nothing for 5 s"


def test_so_is_one_that_takes_next_to_nothing() -> None:
    peer = Peer(takes=100)
    stream = Stream(peer, rate=SOME)
    stream.goes_on(20)
    assert peer.reason


def test_the_time_in_which_we_were_away_does_not_count() -> None:
    good, slow = Peer(takes=100 * HIGH), Peer(takes=0)
    stream = Stream(good, slow, rate=SOME)
    stream.goes_on(1, away_us=60_000_000)
    assert slow.reason == ""


def test_bursts_make_nobody_slow() -> None:
    good, bursts = Peer(takes=100 * HIGH), Peer(takes=8 * SOME)
    stream = Stream(good, bursts, rate=20 * SOME)
    for _ in range(30):
        stream.goes_on(0.25)
        stream.rate = 0
        stream.goes_on(2)
        stream.rate = 20 * SOME
    assert bursts.reason == ""
