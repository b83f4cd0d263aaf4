"""A node's pictures of its links: one for each full second, even if timers are not exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epicast.core.recording import RecordingEnv
from epicast.live.recorder import PICTURES_US, Recorder
from epicast.stacks import stack as stacks
from epicast.stacks.node import Node

START_US = 1_800_000_000_000_000


class Clock:
    """A loop whose timers come too early or too late."""

    def __init__(self, wrong_us: int) -> None:
        self.now_us, self.wrong_us = START_US + 300_000, wrong_us
        self.due: list[tuple[int, Callable[[], None]]] = []

    def unix_us(self) -> int:
        return self.now_us

    def call_later(self, seconds: float, fn: Callable[[], None]) -> Any:
        self.due.append((self.now_us + round(seconds * 1e6) + self.wrong_us, fn))
        return self

    def cancel(self) -> None: ...

    def fire(self) -> None:
        at_us, fn = self.due.pop(0)
        self.now_us = max(self.now_us, at_us)
        fn()


def times_of_pictures(folder: Path, wrong_us: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    clock, times, stack = Clock(wrong_us), [], stacks.load("brisa")
    recorder = Recorder.create(folder, "127.0.0.1:1/a", stack, "full", clock.unix_us)
    monkeypatch.setattr(recorder, "_picture", lambda node, at_us: times.append(at_us))
    recorder.take_pictures(clock, Node(RecordingEnv("127.0.0.1:1/a"), stack))  # type: ignore[arg-type]
    for _ in range(5):
        clock.fire()
    recorder.end({})
    return times


@pytest.mark.parametrize("wrong_us", [-900, -1, 0, 200, 5_000])
def test_one_picture_for_each_second(tmp_path: Path, wrong_us: int, monkeypatch: pytest.MonkeyPatch) -> None:
    times = times_of_pictures(tmp_path / "node", wrong_us, monkeypatch)
    assert times == [START_US + number * PICTURES_US for number in range(1, 6)]
