"""Deliveries, latencies and duplicates of histories whose numbers can be told by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from epicast.core.records import Kind, Level
from tests.pipeline.histories import History, Post
from tests.pipeline.measured import histogram, measured, series


def at(history: History, seconds: float) -> None:
    """Let the next row be written at this time."""
    history.now_us = round(seconds * 1e6) - 1000


def arrive(history: History, node: int, post: Post, *, times: int = 1, hops: int = 1) -> None:
    """One reception that is delivered, and duplicates of it."""
    cargo = {"peer": post.source, "source": post.source, "seq": post.seq, "bytes": 100, "layer": "dissemination"}
    history.add(Kind.RECEIVE, node, hops=hops, **cargo)
    history.now_us -= 1000
    history.add(Kind.DELIVER, node, source=post.source, seq=post.seq, topic=post.topic, hops=hops)
    for _ in range(times - 1):
        history.add(Kind.DUPLICATE, node, hops=hops + 1, **cargo)


def test_latencies_are_of_others_that_were_up_at_the_publication(tmp_path: Path) -> None:
    h = History(4)
    at(h, 1)
    post = h.publish(0)
    for node, ms in ((1, 10), (2, 20), (3, 60)):
        at(h, 1 + ms / 1000)
        h.deliver(node, post)
    late = h.join()
    h.deliver(late, post)
    found = measured(h.save(tmp_path))
    assert found.metrics["latency_ms_mean"] == 30.0
    assert found.metrics["latency_ms_p50"] == 20.0
    assert found.metrics["latency_ms_p90"] == found.metrics["latency_ms_max"] == 60.0
    assert histogram(found, "latency_ms") == {10.0: 1, 20.0: 1, 60.0: 1}
    assert found.metrics["last_receiver_ms_mean"] == 60.0
    assert found.metrics["deliveries"] == 5
    assert found.metrics["window_s"] == pytest.approx(0.062)  # to the delivery of the one that came late


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(tmp_path: Path) -> None:
    h = History(101)
    post = h.publish(0)
    for node in range(1, 101):
        h.add(Kind.DELIVER, node, source=0, seq=0, topic=post.topic, hops=node)
    found = measured(h.save(tmp_path)).metrics
    assert [found[f"hops_{each}"] for each in ("mean", "p50", "p90", "p99", "max")] == [50.5, 50, 90, 99, 100]


def test_who_joins_later_or_ends_is_owed_nothing(tmp_path: Path) -> None:
    """Two processes stay; one crashes, one comes between the messages."""
    h = History(3)
    first = h.publish(0)
    h.deliver(1, first)
    h.deliver(2, first)
    newcomer = h.join()
    second = h.publish(0)
    h.deliver(newcomer, second)
    h.crash(2)
    found = measured(h.save(tmp_path))
    assert (found.metrics["owed"], found.metrics["missing"]) == (2 + 3, 1)  # process 1 lacks the second message
    assert found.metrics["delivery_ratio"] == 0.8
    assert found.metrics["complete_messages_share"] == 0.5
    assert found.metrics["crashes"] == 1
    assert found.metrics["processes"] == 4
    assert found.metrics["processes_staying"] == 2
    assert sum(series(found, "missing").values()) == 1


def test_one_who_joins_in_the_moment_of_the_publication_is_owed_it(tmp_path: Path) -> None:
    h = History(1)
    joined = h.join()
    h.now_us -= 1000
    h.publish(0)
    found = measured(h.save(tmp_path)).metrics
    assert joined == 1
    assert (found["owed"], found["missing"]) == (2, 1)


def test_a_second_delivery_is_repeated_and_fills_no_other_hole(tmp_path: Path) -> None:
    h = History(3)
    post = h.publish(0)
    h.deliver(1, post, post)
    stray = Post(1, 5, "t", 0)
    h.deliver(2, stray)
    found = measured(h.save(tmp_path)).metrics
    assert found["repeated"] == 2  # one again, one of what nobody published
    assert found["missing"] == 1
    assert found["deliveries"] == 4


def test_duplicates_count_over_all_owed_pairs_those_without_any_included(tmp_path: Path) -> None:
    """BR-1: three of the four processes stay, so two messages make six pairs."""
    h = History(4)
    first, second = h.publish(0), h.publish(0)
    for post, extra in ((first, 3), (second, 1)):
        arrive(h, 1, post, times=1 + extra)
        arrive(h, 2, post)
        arrive(h, 3, post, times=6)
    h.add(Kind.DUPLICATE, 0, peer=1, source=0, seq=0, bytes=100, layer="dissemination", hops=2)
    h.crash(3)
    found = measured(h.save(tmp_path))
    assert histogram(found, "duplicates") == {0: 3, 1: 2, 3: 1}
    assert found.metrics["duplicates_mean"] == pytest.approx(5 / 6)
    assert found.metrics["duplicates_p50"] == 0
    assert found.metrics["duplicates_p99"] == 3
    assert histogram(found, "duplicates_per_process") == {0.5: 1, 2.0: 1, 0.0: 1}
    assert found.metrics["duplicates_per_message"] == 15 / 2  # of all processes
    assert found.metrics["duplicates_per_delivery"] == 15 / 6
    assert found.metrics["copies_per_delivery"] == (6 + 15) / 6
    assert found.metrics["redundancy"] == 15 / 6


def test_the_mean_of_a_process_is_over_the_messages_that_it_is_owed(tmp_path: Path) -> None:
    h = History(1)
    h.publish(0)
    newcomer = h.join()
    for _ in range(3):
        arrive(h, newcomer, h.publish(0), times=2)
    assert histogram(measured(h.save(tmp_path)), "duplicates_per_process") == {0.0: 1, 1.0: 1}


def test_the_message_that_builds_the_tree_can_be_left_out(tmp_path: Path) -> None:
    """BR-6. The first of each source: two of the six messages; the later half: the last of three of each."""
    h = History(3)
    for number in range(3):
        for source in (0, 1):
            post = h.publish(source)
            arrive(h, 2, post, times=(5, 2, 1)[number])
    found = measured(h.save(tmp_path)).metrics
    assert found["copies_per_delivery"] == 16 / 6
    assert found["copies_after_first"] == 6 / 4
    assert found["copies_second_half"] == (2 + 1) * 2 / 4  # a middle message belongs to the later half


def test_each_topic_of_a_source_has_a_first_message(tmp_path: Path) -> None:
    h = History(2)
    for topic in ("a", "b", "a", "b"):
        arrive(h, 1, h.publish(0, topic), times=3)
    found = measured(h.save(tmp_path)).metrics
    assert found["copies_after_first"] == 3.0


def test_a_process_spans_from_its_first_delivery_to_its_last(tmp_path: Path) -> None:
    h = History(2)
    for second in (1, 2, 5):
        at(h, second)
        h.deliver(1, h.publish(0))
    found = measured(h.save(tmp_path)).metrics
    assert found["span_ms_max"] == 4000.0


def test_gaps_are_counted(tmp_path: Path) -> None:
    h = History(2)
    post = h.publish(0)
    h.gap(1, post)
    assert measured(h.save(tmp_path)).metrics["gaps"] == 1


def test_series_count_from_the_first_publication(tmp_path: Path) -> None:
    h = History(3)
    at(h, 10)
    for post in (h.publish(0), h.publish(0)):
        h.deliver(1, post)
        h.deliver(2, post)
    h.crash(2)
    at(h, 19)
    h.deliver(1, h.publish(0))
    found = measured(h.save(tmp_path))
    deliveries, up = series(found, "deliveries_per_second"), series(found, "processes_up")
    step_s = 0.1  # 19 s make 190 steps
    assert min(deliveries) == 0.0
    assert {time_s: rate for time_s, rate in deliveries.items() if rate} == {0.0: 4 / step_s, 9.0: 1 / step_s}
    assert min(up) == pytest.approx(-10.0)
    assert (up[0.0], up[step_s], up[9.0]) == (3, 2, 2)
    assert sum(series(found, "crashes_per_minute").values()) == 60 / step_s
    assert len(deliveries) <= 201


def test_a_trace_of_deliveries_says_nothing_about_traffic(tmp_path: Path) -> None:
    h = History(2, level=Level.DELIVERIES)
    h.deliver(1, h.publish(0))
    found = measured(h.save(tmp_path))
    assert found.metrics["delivery_ratio"] == 1.0
    assert not [name for name in found.metrics if name.startswith(("copies", "duplicates", "sent", "upload", "redund"))]
    assert {name for name, *_ in found.histograms} == {"latency_ms", "hops", "last_receiver_ms", "span_ms"}
    assert not [name for name, *_ in found.series if name.startswith("sent")]
