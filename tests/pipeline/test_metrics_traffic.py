"""What was sent and received, by whom, in histories whose numbers can be told by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from epicast.core.records import Kind
from tests.pipeline.histories import History
from tests.pipeline.measured import histogram, measured, series

PAYLOAD = {"source": 0, "seq": 0, "hops": 1}


def transfer(h: History, node: int, peer: int, size: int, *, kind: Kind = Kind.RECEIVE, **columns: object) -> None:
    """Sent by one and received by the other."""
    h.send(node, peer, bytes=size, **columns)
    h.add(kind, peer, peer=node, bytes=size, **{"layer": "dissemination", **columns})


def test_totals_are_by_layer_and_of_the_whole_run(tmp_path: Path) -> None:
    h = History(3)
    transfer(h, 0, 1, 7, layer="membership")  # before the window
    h.publish(0)
    transfer(h, 0, 1, 100, **PAYLOAD)
    transfer(h, 1, 2, 100, **PAYLOAD)
    transfer(h, 2, 1, 110, kind=Kind.DUPLICATE, **PAYLOAD)
    transfer(h, 1, 2, 20)
    transfer(h, 1, 0, 3, layer="gossip")
    h.send(2, 1, bytes=40)
    h.drop(2, 1)
    h.copy(0, 1)
    h.deliver(1, h.publish(2))
    found = measured(h.save(tmp_path)).metrics
    assert (found["sent_messages"], found["sent_bytes"]) == (7, 380)
    assert (found["sent_messages_dissemination"], found["sent_bytes_dissemination"]) == (5, 370)
    assert (found["sent_messages_membership"], found["sent_bytes_membership"]) == (1, 7)
    assert (found["sent_messages_other"], found["sent_bytes_other"]) == (1, 3)
    assert "sent_bytes_topics" not in found
    assert (found["received_messages"], found["received_bytes"]) == (6, 340)
    assert found["received_bytes_dissemination"] == 330
    assert (found["sent_payload_messages"], found["sent_payload_bytes"]) == (3, 310)
    assert found["control_bytes_share"] == pytest.approx(70 / 380)
    assert (found["dropped_messages"], found["dropped_bytes"], found["copied_messages"]) == (1, 10, 1)
    assert found["arrived_bytes_share"] == pytest.approx(340 / 380)
    assert found["arrived_payload_bytes_share"] == 1.0


def test_loads_are_of_those_who_stay_and_of_the_window(tmp_path: Path) -> None:
    h = History(4)
    transfer(h, 0, 1, 1000, layer="membership")  # before the first publication
    first = h.publish(0)
    for peer, size in ((1, 100), (2, 100), (3, 100)):
        transfer(h, 0, peer, size, **PAYLOAD)
    transfer(h, 1, 2, 60, layer="membership")
    h.crash(3)
    h.wait(2)
    h.deliver(1, first)
    transfer(h, 2, 1, 5000)  # after the last delivery
    found = measured(h.save(tmp_path))
    assert histogram(found, "upload_bytes") == {0: 1, 60: 1, 300: 1}
    assert histogram(found, "download_bytes") == {0: 1, 100: 1, 160: 1}
    assert histogram(found, "upload_payload_bytes") == {0: 2, 300: 1}
    assert found.metrics["upload_bytes_mean"] == 120
    assert [found.metrics[f"upload_bytes_p{p}"] for p in (5, 25, 50, 75, 99)] == [0, 0, 60, 300, 300]
    window_s = found.metrics["window_s"]
    assert window_s == pytest.approx(2.011)
    assert found.metrics["upload_bytes_per_second"] == pytest.approx(360 / 3 / window_s)
    assert found.metrics["download_payload_bytes_per_second"] == pytest.approx(200 / 3 / window_s)
    assert found.metrics["upload_messages_per_second"] == pytest.approx(4 / 3 / window_s)


def test_the_balance_of_loads_is_that_of_the_textbook(tmp_path: Path) -> None:
    """Loads 0, 10, 20, 30: the mean difference of pairs is 12.5 and the mean 15, so Gini is 12.5 / 30."""
    h = History(4)
    post = h.publish(0)
    for node in range(4):
        for _ in range(node):
            transfer(h, node, 0, 10, **PAYLOAD)
    h.deliver(1, post)
    found = measured(h.save(tmp_path)).metrics
    assert found["upload_payload_bytes_gini"] == pytest.approx(12.5 / 30)
    assert found["upload_payload_bytes_cv"] == pytest.approx(math.sqrt(125) / 15)
    assert found["download_payload_bytes_gini"] == pytest.approx(0.75)  # one has it all


def test_upload_goes_along_with_the_number_of_children(tmp_path: Path) -> None:
    """BR-7: over two trees; first exactly, then hardly."""
    h = History(4)
    post = h.publish(0)
    for node, children in ((0, 4), (1, 2), (2, 0), (3, 0)):
        for _ in range(children):
            transfer(h, node, 3, 50, **PAYLOAD)
    h.deliver(1, post)
    h.picture({1: 0, 2: 0, 3: 1})
    h.picture({1: 0, 2: 1, 3: 0}, flow="0/1")
    assert measured(h.save(tmp_path / "a")).metrics["upload_children_correlation"] == pytest.approx(1.0)
    for node in (1, 2, 3):
        for _ in range(4):
            transfer(h, node, 0, 50, **PAYLOAD)
    h.deliver(2, post)
    found = measured(h.save(tmp_path / "b")).metrics["upload_children_correlation"]
    assert found == pytest.approx(1 / math.sqrt(3 * 11))  # of 4, 6, 4, 4 messages with 4, 2, 0, 0 children


def test_loads_that_are_all_equal_have_no_correlation(tmp_path: Path) -> None:
    h = History(3)
    h.deliver(1, h.publish(0))
    h.picture({1: 0, 2: 1})
    assert "upload_children_correlation" not in measured(h.save(tmp_path)).metrics


def test_traffic_over_time_is_by_layer_and_begins_before_the_first_publication(tmp_path: Path) -> None:
    h = History(2)
    h.now_us = 999_000
    transfer(h, 0, 1, 30, layer="membership")
    h.wait(2)
    h.deliver(1, h.publish(0))
    transfer(h, 0, 1, 50)
    found = measured(h.save(tmp_path))
    rates = series(found, "sent_bytes_per_second_membership")
    assert {at: rate for at, rate in rates.items() if rate} == {-2.1: 300.0}
    assert {at: rate for at, rate in series(found, "sent_bytes_per_second_dissemination").items() if rate} == {0: 500.0}
