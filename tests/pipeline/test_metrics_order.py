"""How much of the wanted order processes kept, what they lack, and how long it took."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicast.core.records import Kind
from epicast.pipeline.metrics.order import longest_increasing
from tests.pipeline.histories import History, Post
from tests.pipeline.measured import histogram, measured, simulated


@given(st.lists(st.integers(0, 9), max_size=9))
def test_a_longest_increasing_subsequence_is_as_long_as_the_best_of_all(places: list[int]) -> None:
    increasing = (
        size
        for size in range(len(places), -1, -1)
        for chosen in combinations(places, size)
        if all(a < b for a, b in pairwise(chosen))
    )
    assert longest_increasing(np.array(places, np.int64)) == next(increasing)


def stamped(h: History, source: int, time: int, topic: str = "t") -> Post:
    post = h.publish(source, topic, own=False)
    h.rows[post.row]["detail"] = str(time)
    return post


def test_the_order_is_that_of_times_and_then_of_sources(tmp_path: Path) -> None:
    h = History(4)
    c, b, a = stamped(h, 2, 5), stamped(h, 1, 5), stamped(h, 0, 5)
    d = stamped(h, 0, 40)
    e = stamped(h, 0, 300)  # as a text it comes before 40
    h.deliver(0, a, b, c, d, e)
    h.deliver(1, a, c, b, e, d)
    h.deliver(2, e, d, c, b, a)
    h.deliver(3, b, c)
    found = measured(h.save(tmp_path))
    assert histogram(found, "order_kept_percent") == {100: 2, 60: 1, 20: 1}
    metrics = {name: found.metrics[f"order_kept_{name}"] for name in ("min", "mean", "max")}
    assert metrics == pytest.approx({"min": 0.2, "mean": 0.7, "max": 1.0})


def test_every_topic_has_an_order_of_its_own(tmp_path: Path) -> None:
    h = History(2)
    a, b = stamped(h, 0, 1, "one"), stamped(h, 1, 2, "two")
    c, d = stamped(h, 0, 3, "one"), stamped(h, 1, 4, "two")
    h.deliver(0, b, d, a, c)
    h.deliver(1, a, b, d, c)
    assert measured(h.save(tmp_path)).metrics["order_kept_min"] == 1.0


def test_where_no_time_is_given_that_of_the_publication_counts(tmp_path: Path) -> None:
    h = History(2)
    a, b = h.publish(0, own=False), h.publish(1, own=False)
    h.deliver(0, b, a)
    h.deliver(1, a, b)
    run = h.save(tmp_path)
    assert "order_kept_min" not in measured(run).metrics
    assert histogram(measured(run, "order"), "order_kept_percent") == {50: 1, 100: 1}


def test_holes_are_counted_at_processes_that_stay_and_at_all_to_whom_something_is_owed(tmp_path: Path) -> None:
    h = History(4)
    a, b = stamped(h, 0, 1), stamped(h, 0, 2)
    lost = stamped(h, 1, 3)  # nobody delivers it: that is no hole
    late = h.join()
    c = stamped(h, 0, 4)
    h.everywhere(a, b, c, nodes=[0, 1])
    h.deliver(2, a)
    h.deliver(3, a)
    h.crash(3)
    h.deliver(late, a)  # owed c alone
    h.add(Kind.GAP, 2, source=b.source, seq=b.seq, detail="1 late")
    h.add(Kind.GAP, 2, source=b.source, seq=b.seq, detail="1 late")
    h.add(Kind.GAP, 2, source=a.source, seq=a.seq, detail="1 late")  # it had been delivered
    h.add(Kind.GAP, 2, source=lost.source, seq=lost.seq, detail="1 without its payload")
    h.add(Kind.CORRECTION, 2, source=c.source, seq=c.seq, topic="t")
    found = measured(h.save(tmp_path)).metrics
    assert {
        name: found[name] for name in ("holes", "holes_staying", "processes_with_holes", "late", "corrections")
    } == {
        "holes": 3,
        "holes_staying": 2,
        "processes_with_holes": 1,
        "late": 1,
        "corrections": 1,
    }
    assert found["hole_free_share"] == pytest.approx(2 / 3)


def test_the_delay_of_an_order_includes_the_publisher(tmp_path: Path) -> None:
    h = History(3)
    h.crash(2)
    a = stamped(h, 0, 1)
    h.deliver(1, a)
    h.deliver(h.join(), a)  # came later: it tells nothing about the delay
    h.deliver(0, a)
    found = measured(h.save(tmp_path))
    assert histogram(found, "delay_ms") == {1.0: 1, 4.0: 1}
    assert histogram(found, "delay_last_ms") == {4.0: 1}
    assert found.metrics["last_receiver_ms_max"] < 4.0  # which leaves the publisher out


def test_a_run_of_epto_keeps_the_order_that_its_keys_give(tmp_path: Path) -> None:
    workload = {"messages": 60, "rate": 60, "sources": 20, "source_order": "random"}
    found = measured(simulated(tmp_path, stack="epto", nodes=20, workload=workload)).metrics
    assert (found["order_kept_min"], found["holes"], found["hole_free_share"]) == (1.0, 0.0, 1.0)
    assert found["delay_ms_p50"] >= 500  # a dozen rounds, though copies age faster
    spontaneous = measured(simulated(tmp_path / "s", stack="spontaneous", nodes=20, workload=workload)).metrics
    assert spontaneous["order_kept_max"] < 1.0
    assert spontaneous["delay_ms_p50"] < found["delay_ms_p50"]
