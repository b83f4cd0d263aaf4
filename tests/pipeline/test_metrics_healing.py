"""How messages fare after many processes died at once, in histories whose numbers can be told by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.pipeline.histories import STEP_US, History
from tests.pipeline.measured import histogram, measured


def crash_together(history: History, nodes: Sequence[int]) -> None:
    """In the same microsecond."""
    for node in nodes:
        history.crash(node)
        history.now_us -= STEP_US
    history.now_us += STEP_US


def stream(history: History, receivers: Sequence[int], messages: int) -> None:
    """A message each second, from process 0 to these others."""
    for _ in range(messages):
        start_us = history.now_us
        post = history.publish(0)
        for node in receivers:
            history.deliver(node, post)
        history.now_us = start_us + 1_000_000


def test_a_survivor_is_back_with_the_first_message_of_after_the_failure(tmp_path: Path) -> None:
    """Process 1 at once; 2 and 3 with the third message; what came before does not count."""
    h = History(8)
    early = h.publish(0)
    crash_together(h, (4, 5, 6, 7))
    failure_us = h.now_us
    h.deliver(2, early)
    h.now_us = failure_us + 1_000_000
    stream(h, (1,), 2)
    stream(h, (1, 2, 3), 6)
    found = measured(h.save(tmp_path))
    assert list(histogram(found, "cut_off_ms")) == pytest.approx([1003, 3004, 3005])
    assert found.metrics["cut_off_ms_p50"] == pytest.approx(3004)
    assert found.metrics["survivors_back_share"] == 1.0
    assert found.metrics["delivery_ratio_second_half"] == 1.0


def test_who_never_comes_back_is_counted_apart(tmp_path: Path) -> None:
    h = History(8)
    crash_together(h, (4, 5, 6, 7))
    stream(h, (1,), 2)
    stream(h, (1, 2), 8)
    found = measured(h.save(tmp_path))
    assert sum(histogram(found, "cut_off_ms").values()) == 2
    assert found.metrics["survivors_back_share"] == pytest.approx(2 / 3)  # the publisher needs nobody
    assert found.metrics["delivery_ratio_second_half"] == 0.75


def test_processes_that_join_after_the_failure_are_no_survivors(tmp_path: Path) -> None:
    h = History(8)
    crash_together(h, (4, 5, 6, 7))
    newcomer = h.join()
    stream(h, (1, 2, 3, newcomer), 3)
    assert sum(histogram(measured(h.save(tmp_path)), "cut_off_ms").values()) == 3


def test_failures_one_by_one_are_no_mass_failure(tmp_path: Path) -> None:
    h = History(30)
    stream(h, (1, 2, 3), 2)
    for node in range(20, 30):
        h.crash(node)
    stream(h, (1, 2, 3), 2)
    found = measured(h.save(tmp_path))
    assert "survivors_back_share" not in found.metrics
    assert histogram(found, "cut_off_ms") == {}


def test_the_largest_failure_counts(tmp_path: Path) -> None:
    h = History(12)
    crash_together(h, (4, 5))
    stream(h, (1, 2, 3), 2)
    crash_together(h, (6, 7, 8, 9, 10, 11))
    stream(h, (1, 2), 2)
    assert measured(h.save(tmp_path)).metrics["survivors_back_share"] == pytest.approx(2 / 3)


def test_nothing_published_after_the_failure_tells_nothing_about_coming_back(tmp_path: Path) -> None:
    h = History(8)
    stream(h, (1, 2, 3), 2)
    crash_together(h, (4, 5, 6, 7))
    found = measured(h.save(tmp_path))
    assert found.metrics["survivors_back_share"] == 0.0
    assert histogram(found, "cut_off_ms") == {}
