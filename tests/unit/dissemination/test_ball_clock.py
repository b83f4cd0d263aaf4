"""Logical clocks among members of which one says what it likes."""

from __future__ import annotations

from epicast.core.recording import RecordingEnv
from epicast.dissemination.ball_clock import LogicalClock
from epicast.dissemination.ball_keys import TIMESTAMP_MAX

SECOND = 1_000_000
HONEST = 1_000_000
LIAR, MEMBERS = 9, (1, 2, 3)


def clock(*, gives: bool) -> tuple[LogicalClock, RecordingEnv]:
    env = RecordingEnv(0)
    made = LogicalClock(env)
    if gives:
        made.see(HONEST)
        made.take()
    return made, env


def says(made: LogicalClock, reading: int) -> bool:
    """In a ball."""
    believed = made.plausible(reading)
    if believed:
        made.see(reading)
    return believed


def test_a_member_cannot_drive_a_clock_to_its_end() -> None:
    made, env = clock(gives=True)
    for _ in range(60):
        while says(made, made.highest + made._room_now()) and made._room_now() > 1:
            pass
        env.advance(SECOND)
    assert made.highest <= HONEST + LogicalClock.ROOM + 61 * LogicalClock.ROOM_PER_S
    years = (TIMESTAMP_MAX - made.highest) // LogicalClock.ROOM_PER_S // (365 * 86_400)
    assert years > 10_000


def test_what_a_clock_was_driven_to_keeps_no_newcomer_out() -> None:
    old, env = clock(gives=True)
    for _ in range(3600):
        says(old, old.highest + old._room_now())
        env.advance(SECOND)
    new, _ = clock(gives=False)
    assert new.hear(1, old.highest)
    assert new.take() > old.highest
    assert old.plausible(new.highest)


def test_a_newcomer_takes_the_time_of_most_whoever_speaks_first() -> None:
    new, _ = clock(gives=False)
    says(new, 1 << 59)
    new.hear(LIAR, 1 << 59)
    for member in MEMBERS:
        new.hear(member, HONEST + member)
    assert new.take() == HONEST + 4
    assert not says(new, 1 << 59)


def test_a_newcomer_that_hears_another_newcomer_first_takes_the_time_of_members() -> None:
    new, _ = clock(gives=False)
    assert new.hear(LIAR, 0)
    assert new.hear(1, 1 << 50)
    assert new.take() == (1 << 50) + 1


def test_a_process_that_stood_still_catches_up() -> None:
    made, env = clock(gives=True)
    env.advance(3600 * SECOND)
    assert says(made, made.highest + LogicalClock.ROOM)
    assert not says(made, made.highest + LogicalClock.ROOM)
    env.advance(SECOND)
    assert says(made, made.highest + LogicalClock.ROOM_PER_S)
