"""What is left of overlays whose graphs everybody knows when processes vanish from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epicast.pipeline.kernel import DROPS
from epicast.pipeline.layout import Layout
from epicast.pipeline.metrics import drops
from epicast.pipeline.metrics.graph import Graph
from epicast.pipeline.small_runs import Plan, analyse_small
from epicast.pipeline.sweep.experiment import Experiment
from tests.pipeline.histories import History
from tests.pipeline.measured import measured, simulated

Edges = list[tuple[int, int]]


def of(size: int, edges: Edges, areas: list[str] | None = None, seed: int = 1) -> dict[str, float]:
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    return drops.numbers(Graph.of(np.arange(size), sources, targets), areas or [""] * size, seed)


def uniform(found: dict[str, float], what: str) -> dict[int, float]:
    names = {percent: drops.name_of(drops.UNIFORM, percent, what) for percent in drops.UNIFORM.percents}
    return {percent: found[name] for percent, name in names.items() if name in found}


def everyone(nodes: list[int]) -> Edges:
    return [(a, b) for a in nodes for b in nodes if a != b]


def ring(size: int) -> Edges:
    return [(at, (at + 1) % size) for at in range(size)]


def test_of_a_complete_graph_something_complete_is_left() -> None:
    found = of(20, everyone(list(range(20))))
    for what in ("weak_share", "strong_share", "reached_share", "path_mean"):
        assert set(uniform(found, what).values()) == {1.0}
    assert uniform(found, "clustering")[80] == 1.0
    assert uniform(found, "clustering")[90] == 0.0  # two are left, who have one neighbour each


def test_without_links_nobody_reaches_anybody() -> None:
    found = of(10, [])
    assert uniform(found, "weak_share") == pytest.approx({p: 1 / (10 - p / 10) for p in range(0, 100, 10)})
    assert uniform(found, "reached_share") == uniform(found, "strong_share") == uniform(found, "weak_share")
    assert uniform(found, "path_mean") == {}


def test_a_ring_of_one_direction_breaks_with_the_first_that_vanishes() -> None:
    """One out of ten leaves a chain: from its places 0 to 8 others are reached, on average half of it, itself
    included; the ways have 1 to 8 links."""
    found = of(10, ring(10))
    assert (uniform(found, "strong_share")[0], uniform(found, "weak_share")[0]) == (1.0, 1.0)
    assert uniform(found, "path_mean")[0] == 5.0
    assert uniform(found, "strong_share")[10] == pytest.approx(1 / 9)
    assert uniform(found, "weak_share")[10] == 1.0
    assert uniform(found, "reached_share")[10] == pytest.approx((9 * 10 / 2) / 81)
    assert uniform(found, "path_mean")[10] == pytest.approx(sum(k * (9 - k) for k in range(1, 9)) / 36)


def test_two_areas_joined_by_nothing_but_a_third_are_parted_without_it() -> None:
    """Only if that third one is drawn: in a third of the draws, more or less."""
    a, b, c = [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]
    edges = everyone(a) + everyone(b) + everyone(c) + [(3, 4), (4, 3), (7, 8), (8, 7)]
    areas = ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    found = of(12, edges, areas, seed=3)
    whole = found["drop_one_area_100_weak_share"]
    parted = round((1 - whole) * 2 * drops.DRAWS)
    assert 0 < parted < drops.DRAWS
    assert whole == pytest.approx(1 - parted / 2 / drops.DRAWS)
    assert found["drop_two_areas_100_weak_share"] == 1.0


def test_drops_in_areas_spare_all_others() -> None:
    """Of two areas one must be left, so of those no two are taken."""
    areas = ["a"] * 5 + ["b"] * 5
    found = of(10, everyone([0, 1, 2, 3, 4]), areas)
    assert found["drop_one_area_100_weak_share"] in {k / drops.DRAWS + (1 - k / drops.DRAWS) / 5 for k in range(11)}
    assert "drop_one_area_100_clustering" not in found
    assert not [name for name in found if "two_areas" in name]
    assert not [name for name in of(4, ring(4)) if "area" in name]


def test_the_lot_falls_as_the_seed_says() -> None:
    edges = [*ring(40), *[(at, (7 * at + 3) % 40) for at in range(40)]]
    areas = [str(at % 4) for at in range(40)]
    assert of(40, edges, areas) == of(40, edges, areas)
    assert of(40, edges, areas) != of(40, edges, areas, seed=2)


# Of runs


def test_it_is_the_last_picture_that_counts_and_only_who_is_up(tmp_path: Path) -> None:
    h = History(5)
    h.neighbours(*everyone([0, 1, 2, 3, 4]))
    h.wait(1)
    h.crash(4)
    h.wait(1)
    h.neighbours((0, 1), (1, 2), (2, 3), (3, 0), (0, 4))
    found = measured(h.save(tmp_path), DROPS).metrics
    assert found["drop_uniform_0_path_mean"] == 2.0
    assert found["drop_uniform_0_strong_share"] == 1.0


def test_nothing_is_dropped_unless_somebody_asks(tmp_path: Path) -> None:
    run = simulated(tmp_path, nodes=12, stack="scamp-flood")
    assert not drops.NAMES.keys() & measured(run).metrics.keys()
    assert drops.NAMES.keys() & measured(run, DROPS).metrics.keys()


def test_a_run_without_pictures_has_nothing_to_drop_from(tmp_path: Path) -> None:
    h = History(3)
    h.publish(0)
    h.picture({1: 0})
    assert not drops.NAMES.keys() & measured(h.save(tmp_path), DROPS).metrics.keys()


def test_an_experiment_asks_and_what_was_known_without_is_not_taken_for_it(tmp_path: Path) -> None:
    asked = Experiment.load({"title": "drops", "extra": ["drops"]})
    assert Experiment.from_toml(asked.to_toml()).extra == ("drops",)
    layout = Layout(tmp_path).make()
    simulated(layout.run("a"), nodes=12, stack="scamp-flood")
    for extra, found in (((), False), (asked.extra, True), ((), False)):
        row = analyse_small("a", Plan(layout, keep_tables=False, extra=extra)).to_pylist()[0]
        assert ("drop_uniform_50_weak_share" in dict(row["metrics"])) is found
