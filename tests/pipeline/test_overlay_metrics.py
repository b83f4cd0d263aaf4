"""Numbers of overlays whose graphs everybody knows."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from epicast.pipeline.metrics import graph
from epicast.pipeline.metrics.graph import Graph, numbers
from epicast.pipeline.metrics.measures import SERIES_POINTS_MAX
from tests.pipeline.histories import History
from tests.pipeline.measured import histogram, measured, series

Edges = list[tuple[int, int]]


def of(size: int, edges: Edges, *, both: bool = True) -> dict[str, float]:
    pairs = edges + [(b, a) for a, b in edges] if both else edges
    sources, targets = np.array(pairs, np.int64).reshape(-1, 2).T
    return numbers(Graph.of(np.arange(size), sources, targets))


def ring(size: int) -> Edges:
    return [(at, (at + 1) % size) for at in range(size)]


def test_a_complete_graph() -> None:
    found = of(6, list(combinations(range(6), 2)))
    assert (found["edges"], found["links"], found["clustering"]) == (15, 30, 1.0)
    assert (found["path_mean"], found["diameter"]) == (1.0, 1)
    assert (found["degree_min"], found["degree_mean"], found["degree_max"]) == (5, 5.0, 5)
    assert found["asymmetric_share"] == 0.0


def test_a_ring() -> None:
    found = of(8, ring(8))
    assert found["diameter"] == 4
    assert found["path_mean"] == pytest.approx((1 + 1 + 2 + 2 + 3 + 3 + 4) / 7)
    assert found["clustering"] == 0.0
    assert (found["weak_components"], found["strong_components"]) == (1, 1)


def test_a_star() -> None:
    found = of(5, [(0, peer) for peer in range(1, 5)])
    assert (found["degree_max"], found["degree_min"], found["degree_common"]) == (4, 1, 1)
    assert found["above_common_share"] == 1 / 5
    assert found["about_mean_share"] == 4 / 5  # the mean is 1.6
    assert found["path_mean"] == pytest.approx((4 * 1 + 4 * (1 + 3 * 2)) / 20)


def test_a_triangle_with_a_tail() -> None:
    """Two corners have all their neighbours linked, the third one pair out of three, the tail none to link."""
    found = of(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
    assert found["clustering"] == pytest.approx((1 + 1 + 1 / 3 + 0) / 4)


def test_processes_without_links_are_part_of_the_graph() -> None:
    found = of(5, [(0, 1), (1, 2)])
    assert (found["processes"], found["degree_min"], found["unknown_processes"]) == (5, 0, 2)
    assert (found["weak_components"], found["largest_weak_share"]) == (3, 3 / 5)
    assert found["diameter"] == 2  # of the largest component


def test_links_in_one_direction_only() -> None:
    """0 to 1 to 2 and back, and 3 points at 0: nobody points at 3."""
    found = of(4, [(0, 1), (1, 2), (2, 0), (3, 0), (1, 0)], both=False)
    assert found["asymmetric_share"] == pytest.approx(3 / 5)
    assert (found["weak_components"], found["strong_components"]) == (1, 2)
    assert found["largest_strong_share"] == 3 / 4
    assert (found["in_degree_min"], found["in_degree_max"], found["unknown_processes"]) == (0, 3, 1)
    assert found["edges"] == 4


def test_two_components_are_measured_by_the_larger() -> None:
    found = of(7, [*ring(4), (4, 5), (5, 6)])
    assert (found["weak_components"], found["strong_components"]) == (2, 2)
    assert found["diameter"] == 2
    assert found["path_mean"] == pytest.approx(4 / 3)


def test_a_single_process_has_no_distances() -> None:
    found = of(1, [])
    assert found["processes"] == 1
    assert found["largest_weak_share"] == 1.0
    assert not {"path_mean", "diameter", "asymmetric_share", "stale_share"} & found.keys()


def test_large_graphs_are_estimated_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(1)
    edges = [(node, chance.randrange(600)) for node in range(600) for _ in range(3)]
    exact = of(600, edges)
    monkeypatch.setattr(graph, "EXACT_NODES_MAX", 100)
    found = of(600, edges)
    assert not {"path_mean", "diameter"} & found.keys()
    assert found["path_mean_estimate"] == pytest.approx(exact["path_mean"], rel=0.05)
    assert exact["diameter"] - 2 <= found["diameter_lower_bound"] <= exact["diameter"]
    assert of(600, edges) == found


# From pictures


def test_every_picture_is_a_point_and_the_last_one_a_metric(tmp_path: Path) -> None:
    h = History(4)
    h.wait(1)
    h.neighbours((0, 1), (1, 0))
    h.wait(1)
    h.publish(0)
    h.wait(1)
    h.neighbours((0, 1), (1, 0), (1, 2), (2, 1), (2, 3))
    found = measured(h.save(tmp_path))
    assert series(found, "overlay_weak_components") == {-1.001: 3, 1.001: 1}
    assert found.metrics["overlay_weak_components"] == 1
    assert found.metrics["overlay_strong_components"] == 2
    assert found.metrics["overlay_asymmetric_share"] == 1 / 5
    assert histogram(found, "degree") == {0: 1, 1: 1, 2: 2}


def test_processes_are_those_that_are_up_when_the_picture_is_taken(tmp_path: Path) -> None:
    h = History(3)
    h.crash(2)
    h.wait(1)
    h.neighbours((0, 1), (1, 0), (1, 2))
    h.wait(1)
    h.join()
    found = measured(h.save(tmp_path)).metrics
    assert (found["overlay_processes"], found["overlay_links"]) == (2, 2)
    assert found["overlay_stale_share"] == 1 / 3


def test_a_long_series_of_pictures_is_thinned_out_and_keeps_its_end(tmp_path: Path) -> None:
    h = History(2)
    for _ in range(SERIES_POINTS_MAX + 1):
        h.wait(1)
        h.neighbours((0, 1), (1, 0))
    found = series(measured(h.save(tmp_path)), "overlay_links")
    assert len(found) == SERIES_POINTS_MAX // 2 + 1
    assert max(found) == pytest.approx(h.now_us / 1e6 - 0.001)
