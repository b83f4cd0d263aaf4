"""Flooding costs exactly what the reference says, and more with larger views (figure 4.3)."""

from statistics import median

import pytest

from epicast.core.records import Kind, Level
from epicast.dissemination.flood import Flood, Gossip
from tests.support.overlays import SECOND, Edge, Overlay, complete, random_edges, ring, star
from tests.support.worlds import Rows, degrees, grown, stream, views

MESSAGES = 20

GRAPHS = {
    "ring": ring(12),
    "star": star(9),
    "complete": complete(7),
    "regular of degree 4": random_edges(40, 4),
    "regular of degree 7": random_edges(30, 7),
    "ring with a tail": [*ring(5), (0, 5), (5, 6)],
}


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("source", [0, 4])
def test_a_message_costs_twice_the_links_less_one_for_each_process_but_the_source(
    edges: list[Edge], source: int
) -> None:
    """Section 5.2: 2E - (N - 1) transmissions, 2E - 2(N - 1) duplicates, d - 2 + 2/N of them at each process."""
    overlay = Overlay(edges, Flood, static=True)
    nodes, links = len(overlay.nodes), len(edges)
    overlay.publish(source)
    overlay.run(5 * SECOND)
    assert len(overlay.sends(Gossip)) == 2 * links - (nodes - 1)
    assert overlay.duplicates() == 2 * links - 2 * (nodes - 1)
    assert overlay.duplicates() / nodes == pytest.approx(2 * links / nodes - 2 + 2 / nodes)


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_everyone_delivers_every_message_once(edges: list[Edge]) -> None:
    """Section 5.2, on a connected overlay."""
    overlay = Overlay(edges, Flood, static=True)
    for source in (0, 3, 0):
        overlay.publish(source)
    overlay.run(5 * SECOND)
    assert {tuple(sorted(got)) for got in overlay.delivered.values()} == {((0, 0), (0, 1), (3, 0))}


def test_everyone_with_a_living_neighbour_is_reached() -> None:
    """Section 5.2: failed processes are no obstacle while the others hang together."""
    overlay = Overlay(complete(8), Flood, static=True)
    overlay.crash(1, 2, 3, 5, 6)
    overlay.publish()
    overlay.run(5 * SECOND)
    assert {node: overlay.delivered[node] for node in overlay.nodes} == {0: [(0, 0)], 4: [(0, 0)], 7: [(0, 0)]}


def test_no_copy_goes_back_over_the_link_that_it_came_from() -> None:
    """E-B3: on a tree that leaves one transmission a link, and no duplicate."""
    overlay = Overlay(star(6), Flood, static=True)
    overlay.publish(3)
    overlay.run(5 * SECOND)
    assert len(overlay.sends(Gossip)) == 5
    assert overlay.duplicates() == 0


@pytest.fixture(scope="module")
def duplicates() -> dict[int, list[float]]:
    """For each size of the active view: duplicates a message at each of 256 processes."""
    return {size: _duplicates(size) for size in (4, 6, 8, 10)}


def _duplicates(size: int) -> list[float]:
    world = grown("flood", 256, settle_us=20 * SECOND, level=Level.FULL, membership={"active_size": size})
    rows = Rows(world)
    stream(world, MESSAGES)
    assert world.all_delivered()
    return [count / MESSAGES for count in rows.by_node(Kind.DUPLICATE).values()]


def test_half_the_processes_get_more_than_one_duplicate_with_view_4_and_more_than_7_with_view_10(
    duplicates: dict[int, list[float]],
) -> None:
    """BR-1, figure 4.3: at half its size."""
    assert median(duplicates[4]) > 1
    assert median(duplicates[10]) > 7


def test_duplicates_grow_with_the_view(duplicates: dict[int, list[float]]) -> None:
    """BR-1, figure 4.3."""
    medians = [median(duplicates[size]) for size in sorted(duplicates)]
    assert medians == sorted(medians)
    assert len(set(medians)) == len(medians)


def test_mean_duplicates_are_the_mean_degree_less_two() -> None:
    """BR-1, on an overlay that grew by itself and changes as it likes."""
    world = grown("flood", 256, settle_us=20 * SECOND, level=Level.FULL)
    rows = Rows(world)
    before = degrees(views(world))
    stream(world, MESSAGES)
    after = degrees(views(world))
    mean = sum(rows.by_node(Kind.DUPLICATE).values()) / MESSAGES / 256
    mean_degree = (sum(before) + sum(after)) / 2 / 256
    assert mean == pytest.approx(mean_degree - 2, abs=0.15)
