from random import Random

import pytest

from epicast.core.periodic import Periodic
from epicast.core.recording import RecordingEnv

PERIOD_US = 1_000


class Clock:
    """Notes when the task ran."""

    def __init__(self, seed: int = 0) -> None:
        self.env, self.times = RecordingEnv(seed=seed), list[int]()
        self.task = Periodic(self.env, PERIOD_US, self._on_tick)
        self.runs_left = -1

    def _on_tick(self) -> None:
        self.times.append(self.env.now_us())
        self.runs_left -= 1
        if self.runs_left == 0:
            self.task.stop()


def test_it_runs_once_a_period() -> None:
    clock = Clock()
    clock.task.start()
    clock.env.advance(5 * PERIOD_US)
    first = clock.times[0]
    assert clock.times == [first + n * PERIOD_US for n in range(5)]


def test_the_first_run_falls_anywhere_in_the_first_period() -> None:
    firsts = []
    for seed in range(300):
        clock = Clock(seed)
        clock.task.start()
        clock.env.advance(PERIOD_US)
        assert len(clock.times) == 1
        firsts += clock.times
    assert all(1 <= first <= PERIOD_US for first in firsts)
    assert min(firsts) < PERIOD_US // 10
    assert max(firsts) > PERIOD_US * 9 // 10


@pytest.mark.parametrize(("chance", "first_us"), [(0.0, 1), (0.5, PERIOD_US // 2 + 1), (1 - 2**-53, PERIOD_US)])
def test_the_first_run_is_never_at_once_and_never_later_than_a_period(chance: float, first_us: int) -> None:
    class Loaded(Random):
        def random(self) -> float:
            return chance

    clock = Clock()
    clock.env.rng = Loaded()
    clock.task.start()
    clock.env.advance(PERIOD_US)
    assert clock.times == [first_us]


def test_nothing_runs_before_the_start() -> None:
    clock = Clock()
    clock.env.advance(10 * PERIOD_US)
    assert clock.times == []


def test_nothing_runs_after_the_stop() -> None:
    clock = Clock()
    clock.task.start()
    clock.env.advance(2 * PERIOD_US)
    clock.task.stop()
    clock.task.stop()
    clock.env.advance(10 * PERIOD_US)
    assert len(clock.times) == 2


def test_a_task_may_stop_itself() -> None:
    clock = Clock()
    clock.runs_left = 3
    clock.task.start()
    clock.env.advance(10 * PERIOD_US)
    assert len(clock.times) == 3


def test_it_can_be_started_again() -> None:
    clock = Clock()
    clock.task.start()
    clock.task.stop()
    clock.task.start()
    clock.env.advance(PERIOD_US)
    assert len(clock.times) == 1


def test_starting_twice_is_a_mistake() -> None:
    clock = Clock()
    clock.task.start()
    with pytest.raises(AssertionError, match="already started"):
        clock.task.start()


def test_stopping_what_was_never_started_does_nothing() -> None:
    Clock().task.stop()


def test_a_period_must_be_positive() -> None:
    with pytest.raises(AssertionError):
        Periodic(RecordingEnv(), 0, lambda: None)
