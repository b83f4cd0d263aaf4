"""What comes from near and from far, in histories whose numbers can be told by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epicast.core.records import Kind, Level
from epicast.membership.distances import parse_distances
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.metrics import Measures, places
from tests.pipeline.histories import History
from tests.pipeline.measured import histogram, measured, series, simulated

PAYLOAD = {"source": 0, "seq": 0, "hops": 1}


def placed(*areas: str, level: Level = Level.FULL) -> History:
    """A process in each area."""
    h = History(len(areas), level=level)
    h.area = dict(enumerate(areas))
    return h


def get(h: History, node: int, peer: int, size: int = 100, **columns: Any) -> None:
    """`node` receives what `peer` sent."""
    h.send(peer, node, bytes=size, **columns)
    h.receive(node, peer, bytes=size, **columns)


def test_copies_are_split_by_where_they_come_from(tmp_path: Path) -> None:
    """Process 2 is in another area than 0 and 1."""
    h = placed("a", "a", "b")
    h.publish(0)
    get(h, 1, 0, 100, **PAYLOAD)
    get(h, 2, 0, 110, **PAYLOAD)
    h.deliver(1, h.publish(0))
    h.add(Kind.DUPLICATE, 1, peer=2, bytes=120, layer="dissemination", **PAYLOAD)
    h.add(Kind.DUPLICATE, 0, peer=1, bytes=130, layer="dissemination", **PAYLOAD)
    found = measured(h.save(tmp_path))
    assert (found.metrics["near_copies_per_message"], found.metrics["far_copies_per_message"]) == (1.0, 1.0)
    assert (found.metrics["near_duplicates_per_message"], found.metrics["far_duplicates_per_message"]) == (0.5, 0.5)
    assert (found.metrics["near_payload_bytes"], found.metrics["far_payload_bytes"]) == (230, 230)
    assert found.metrics["far_payload_bytes_share"] == 0.5
    assert histogram(found, "near_copies") == {0: 1, 1: 2}
    assert histogram(found, "far_copies") == {0: 1, 1: 2}
    assert found.metrics["far_copies_mean"] == pytest.approx(2 / 3)


def test_what_carries_no_payload_is_told_apart(tmp_path: Path) -> None:
    h = placed("a", "a", "b")
    post = h.publish(0)
    get(h, 1, 0, 10, detail="IHave")
    get(h, 2, 0, 10, detail="IHave")
    get(h, 2, 1, 10, detail="IHave")
    get(h, 0, 2, 9, detail="IWant")
    get(h, 2, 0, 200, **PAYLOAD)
    get(h, 2, 1, 7, layer="membership", detail="Heartbeat")
    h.deliver(2, post)
    found = measured(h.save(tmp_path))
    assert (found.metrics["near_advertisements"], found.metrics["far_advertisements"]) == (1, 2)
    assert found.metrics["far_advertisements_per_message"] == 2
    assert (found.metrics["near_signals"], found.metrics["far_signals"]) == (1, 3)
    assert (found.metrics["near_control_bytes"], found.metrics["far_control_bytes"]) == (10, 36)
    assert (found.metrics["near_copies_per_message"], found.metrics["far_copies_per_message"]) == (0, 1)
    assert histogram(found, "far_advertisements") == {0: 2, 2: 1}


def test_only_processes_that_stay_are_counted_one_by_one(tmp_path: Path) -> None:
    """The sums are of all."""
    h = placed("a", "b", "b")
    h.publish(0)
    for node in (1, 2):
        get(h, node, 0, **PAYLOAD)
    h.crash(2)
    found = measured(h.save(tmp_path))
    assert found.metrics["far_copies_per_message"] == 2
    assert histogram(found, "far_copies") == {0: 1, 1: 1}


def test_without_areas_nothing_is_said_about_them(tmp_path: Path) -> None:
    h = History(3)
    h.publish(0)
    get(h, 1, 0, **PAYLOAD)
    h.neighbours((0, 1), (1, 0))
    assert spoken_of(measured(h.save(tmp_path))) == set()


def test_processes_that_are_nowhere_are_left_out(tmp_path: Path) -> None:
    h = placed("a", "", "b")
    h.publish(0)
    get(h, 1, 0, **PAYLOAD)
    get(h, 0, 1, **PAYLOAD)
    get(h, 2, 0, **PAYLOAD)
    h.neighbours((0, 1), (1, 2), (0, 2))
    found = measured(h.save(tmp_path))
    assert (found.metrics["near_copies_per_message"], found.metrics["far_copies_per_message"]) == (0, 1)
    assert histogram(found, "far_degree") == {0: 1, 1: 1}
    assert histogram(found, "near_degree") == {0: 2}


def test_a_trace_of_deliveries_still_tells_where_links_lead(tmp_path: Path) -> None:
    h = placed("a", "b", level=Level.DELIVERIES)
    h.publish(0)
    h.neighbours((0, 1))
    found = measured(h.save(tmp_path))
    assert found.metrics["far_degree_mean"] == 0.5
    assert "far_copies_mean" not in found.metrics


def spoken_of(found: Measures) -> set[str]:
    names = {*found.metrics, *(name for name, *_ in found.histograms + found.series)}
    return {
        name for name in names if name.startswith(("near_", "far_", "overlay_near", "overlay_far")) or "_at_" in name
    }


# Links


def test_links_are_split_by_where_they_lead(tmp_path: Path) -> None:
    """Both ways: 3 knows the whole other area, and nobody there knows it."""
    h = placed("a", "a", "a", "b")
    h.neighbours((0, 1), (1, 0), (3, 0), (3, 1), (3, 2))
    found = measured(h.save(tmp_path))
    assert histogram(found, "near_degree") == {0: 2, 1: 2}
    assert histogram(found, "far_degree") == {0: 3, 3: 1}
    assert histogram(found, "near_in_degree") == {0: 2, 1: 2}
    assert histogram(found, "far_in_degree") == {0: 1, 1: 3}
    assert (found.metrics["near_degree_mean"], found.metrics["far_degree_mean"]) == (0.5, 0.75)
    assert found.metrics["far_in_degree_max"] == 1
    assert [found.metrics[f"overlay_degree_mean_at_{distance}"] for distance in (0, 1)] == [0.5, 0.75]
    assert "overlay_degree_mean_at_2" not in found.metrics


def test_links_to_those_who_are_gone_lead_nowhere(tmp_path: Path) -> None:
    h = placed("a", "a", "b")
    h.crash(2)
    h.wait(1)
    h.neighbours((0, 1), (0, 2))
    found = measured(h.save(tmp_path))
    assert histogram(found, "far_degree") == {0: 2}
    assert found.metrics["near_degree_mean"] == 0.5


def test_every_picture_is_a_point_of_the_series(tmp_path: Path) -> None:
    h = placed("a", "a", "b")
    h.publish(0)
    h.wait(1)
    h.neighbours((0, 1), (0, 2), (1, 2))
    h.wait(1)
    h.neighbours((0, 1))
    found = measured(h.save(tmp_path))
    near, far = (list(series(found, f"overlay_{where}_degree_mean").values()) for where in ("near", "far"))
    assert near == pytest.approx([1 / 3, 1 / 3])
    assert far == pytest.approx([2 / 3, 0])
    assert histogram(found, "far_degree") == {0: 3}  # of the last one
    assert found.metrics["overlay_degree_mean_at_1"] == 0


# Distances

LABELS = ["eu", "eu/paris", "eu/paris/1", "eu/paris/2", "eu/rome/1", "us/ny/1", "us/ny/1/a/b", "a/b/c/d/e/f/g/h/1"]


def test_distances_are_those_that_the_protocols_go_by(tmp_path: Path) -> None:
    """But for those that are not told apart because they are large."""
    h = placed(*LABELS)
    labels = parse_distances("labels")
    with DuckKernel(h.save(tmp_path)) as kernel:
        assert places.define(kernel)
        sql = f"""
            SELECT a.area AS a, b.area AS b, {places.distance_sql("a", "b")} AS distance
            FROM measured_places AS a CROSS JOIN measured_places AS b
        """
        found = {(row["a"], row["b"]): row["distance"] for row in kernel.query(sql).to_pylist()}
    assert len(found) == len(LABELS) ** 2
    for (a, b), distance in found.items():
        assert distance == min(labels.between(0, a, 1, b), places.DISTANCE_MAX), (a, b)


def test_copies_and_links_are_counted_by_distance(tmp_path: Path) -> None:
    h = placed("eu/1", "eu/1", "eu/2", "us/1")
    h.publish(0)
    for node in (1, 2, 3):
        get(h, node, 0, **PAYLOAD)
    get(h, 3, 2, **PAYLOAD)
    h.neighbours((0, 1), (0, 2), (0, 3), (2, 3))
    found = measured(h.save(tmp_path)).metrics
    assert [found[f"copies_per_message_at_{distance}"] for distance in (0, 1, 2)] == [1, 1, 2]
    assert [found[f"overlay_degree_mean_at_{distance}"] for distance in (0, 1, 2)] == [0.25, 0.25, 0.5]
    assert (found["near_copies_per_message"], found["far_copies_per_message"]) == (1, 3)


# Runs


def test_near_and_far_make_up_everything(tmp_path: Path) -> None:
    """Flooding along links that stay brings each process as many copies as there are links to it, or nearly: a message
    does not go back to where it came from."""
    still = {"membership": {"lease": "0s", "target_degree": 5}}
    workload = {"messages": 8, "rate": 2, "sources": 8}
    run = simulated(
        tmp_path, stack="scamp-flood", nodes=60, latency="areas 3 1ms 5ms", overrides=still, workload=workload
    )
    found = measured(run).metrics
    copies = found["near_copies_per_message"] + found["far_copies_per_message"]
    assert copies == found["received_payload_messages"] / found["messages"]
    assert found["near_payload_bytes"] + found["far_payload_bytes"] == found["received_payload_bytes"]
    control = found["received_bytes"] - found["received_payload_bytes"]
    assert found["near_control_bytes"] + found["far_control_bytes"] == control
    assert found["near_degree_mean"] + found["far_degree_mean"] == pytest.approx(found["overlay_degree_mean"])
    for where in ("near", "far"):
        expected = 60 * found[f"{where}_degree_mean"]
        assert 0.9 * expected <= found[f"{where}_copies_per_message"] <= expected
