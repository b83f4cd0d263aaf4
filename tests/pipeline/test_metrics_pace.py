"""How fast messages travel as a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from epicast.core.records import Kind
from tests.pipeline.histories import History
from tests.pipeline.measured import measured, series


def test_later_messages_are_told_from_earlier_ones(tmp_path: Path) -> None:
    h = History(3)
    for hops, wait_s in ((1, 0.010), (4, 0.040)):
        post = h.publish(0)
        published_us = h.now_us
        h.wait(wait_s)
        for node in (1, 2):
            h.add(Kind.DELIVER, node, source=0, seq=post.seq, topic=post.topic, hops=hops)
        h.now_us = published_us + 10_000_000
    found = measured(h.save(tmp_path))
    assert list(series(found, "hops_mean").values()) == [1.0, 4.0]
    assert list(series(found, "latency_ms_mean").values()) == pytest.approx([12.5, 42.5])  # own delivery takes 1 ms


def test_own_deliveries_and_newcomers_do_not_count(tmp_path: Path) -> None:
    h = History(2)
    post = h.publish(0)
    h.deliver(1, post)
    late = h.join()
    h.add(Kind.DELIVER, late, source=0, seq=post.seq, topic=post.topic, hops=9)
    assert list(series(measured(h.save(tmp_path)), "hops_mean").values()) == [0.0]
