"""How many processes there are: what one of them does, and how near all of them come."""

from math import log2, sqrt

import pytest

from epicast.core.recording import RecordingEnv, Send
from epicast.dissemination.ball_messages import HeadCountConfig, Heads
from epicast.dissemination.head_count import HeadCount
from tests.support.neighbours import Members


def count(seed: int = 0, peers: tuple[int, ...] = (1,), **settings: int) -> tuple[HeadCount, RecordingEnv]:
    env = RecordingEnv(0, seed)
    return HeadCount(env, HeadCountConfig(**settings), Members(peers), lambda: 7), env


def crowd(nodes: int, marks: int = 64, first_seed: int = 0) -> tuple[int, ...]:
    """What all together have drawn."""
    drawn = [count(first_seed + seed, marks=marks)[0].marks for seed in range(nodes)]
    return tuple(map(max, *drawn)) if nodes > 1 else drawn[0]


@pytest.mark.parametrize("nodes", [1, 10, 100, 1000])
def test_the_estimate_is_off_by_as_much_as_theory_says(nodes: int) -> None:
    """The standard deviation is 1 / sqrt(k - 2); over eight counts the error squared stays near its mean."""
    errors = []
    for trial in range(8):
        process, env = count(first := 10_000 * trial + 1)
        process.on_heads(1, Heads(0, crowd(nodes, first_seed=first), 0))
        errors.append(process.estimate / nodes - 1)
        assert env is not None
    assert sqrt(sum(error**2 for error in errors) / 8) < 2 / sqrt(62)
    # What it is for: the number of rounds is off by less than one.
    assert max(abs(log2(1 + error)) for error in errors) < 1


def test_more_marks_are_more_exact() -> None:
    errors = {}
    for marks in (16, 256):
        found = []
        for trial in range(6):
            process, _ = count(first := 5_000 * trial + 1, marks=marks)
            process.on_heads(1, Heads(0, crowd(100, marks, first), 0))
            found.append((process.estimate / 100 - 1) ** 2)
        errors[marks] = sum(found)
    assert errors[256] < errors[16] / 4


def test_two_that_tell_each_other_know_the_same() -> None:
    one, env = count(1)
    other, _ = count(2)
    one.on_heads(9, Heads(0, other.marks, 0))
    (answer,) = env.take()
    assert isinstance(answer, Send)
    assert answer == Send(9, Heads(0, one.marks, 7, True))
    other.on_heads(0, answer.msg)  # type: ignore[arg-type]
    assert one.marks == other.marks
    assert one.estimate == other.estimate


def test_who_has_nothing_new_to_tell_does_not_answer() -> None:
    one, env = count(1)
    one.on_heads(9, Heads(0, tuple(mark + 1 for mark in one.marks), 0))
    assert env.effects == []


def test_an_answer_is_not_answered() -> None:
    one, env = count(1)
    one.on_heads(9, Heads(0, (0,) * 64, 0, True))
    assert env.effects == []


def test_everybody_tells_somebody_now_and_then() -> None:
    one, env = count(1, count_interval_us=500_000)
    one.start()
    env.advance(5_000_000)
    assert 9 <= len(env.sent(Heads)) <= 10
    one.stop()
    env.take()
    env.advance(5_000_000)
    assert env.effects == []


def test_growth_is_seen_at_once() -> None:
    one, _ = count(1)
    one.on_heads(9, Heads(0, crowd(10), 0))
    before = one.estimate
    one.on_heads(9, Heads(0, crowd(200), 0))
    assert one.estimate > 10 * before / 2


def test_shrinkage_is_seen_after_an_epoch() -> None:
    one, env = count(1, epoch_intervals=4, count_interval_us=500_000)
    one.start()
    one.on_heads(9, Heads(0, crowd(200), 0))
    full = one.estimate
    env.advance(2_500_000)
    assert one.epoch == 1
    assert one.estimate == full  # the new count has only begun
    env.advance(2_000_000)
    assert one.epoch == 2
    assert one.estimate < 3


def test_a_newer_epoch_is_joined_and_an_older_one_is_told() -> None:
    one, env = count(1)
    one.on_heads(9, Heads(5, crowd(50), 0))
    assert one.epoch == 5
    assert one.estimate > 20
    env.take()
    one.on_heads(9, Heads(4, crowd(900), 0))
    assert one.estimate < 100
    assert env.take() == [Send(9, Heads(5, one.marks, 7, True))]


def test_nobody_can_make_us_begin_again_and_again() -> None:
    one, _ = count(1)
    one.on_heads(9, Heads(5, crowd(50), 0))
    one.on_heads(9, Heads(6, (0,) * 64, 0))
    one.on_heads(9, Heads(1 << 60, (0,) * 64, 0))
    assert one.epoch == 5
    assert one.estimate > 20


def test_nobody_can_use_up_the_numbers_of_epochs() -> None:
    """Above the highest, nobody could read what a process tells of its epoch."""
    env = RecordingEnv(1)
    count = HeadCount(env, HeadCountConfig(), Members((2,)), lambda: 0)  # type: ignore[arg-type]
    count.start()
    count.on_heads(2, Heads((1 << 63) - 1, count.marks, 0))
    assert count.epoch == 0
    count.on_heads(2, Heads(7, count.marks, 0))
    assert count.epoch == 7, "a newcomer joins"
    env.advance(15_000_000)
    count.on_heads(2, Heads(1 << 62, count.marks, 0))
    assert count.epoch == 7


def test_other_numbers_of_marks_are_ignored() -> None:
    one, env = count(1)
    before = one.marks
    for marks in ((), (9,), (65_535,) * 65):
        one.on_heads(9, Heads(0, marks, 0))
    assert one.marks == before
    assert env.effects == []
