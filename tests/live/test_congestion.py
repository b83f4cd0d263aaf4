"""Whoever waits for a peer is let go once the peer has taken what waited, whatever the marks and however it does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.live.config import Limits
from epicast.live.congestion import Congestion
from epicast.live.connection import Connection


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


def test_nobody_waits_for_a_peer_that_is_stuck_until_much_more_waits_for_it() -> None:
    desk, conn, _ = connected(262_144, peer_queue_bytes=8_000_000)
    while not desk.congestion:
        conn.send(bytes(10_000))
    conn.watch.stuck = True
    desk.congestion.look(conn)
    assert not desk.congestion
    while not desk.congestion:
        conn.send(bytes(10_000))
    assert 1_000_000 < conn.waiting_bytes < 1_100_000
    desk.congestion.look(conn)
    assert desk.congestion


def test_a_peer_that_was_stuck_is_waited_for_again() -> None:
    desk, conn, _ = connected(262_144)
    conn.watch.stuck = True
    for _ in range(80):
        conn.send(bytes(10_000))
    assert not desk.congestion
    conn.watch.stuck = False
    conn.send(bytes(10_000))
    assert desk.congestion
