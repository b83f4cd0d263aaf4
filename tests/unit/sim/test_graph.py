"""Random graphs: degrees, no loops, no double edges."""

from __future__ import annotations

from random import Random

import pytest

from epicast.core.errors import ConfigError
from epicast.sim.graph import directed, symmetric


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 10, 11, 30])
@pytest.mark.parametrize("degree", [1, 2, 4, 9])
def test_everyone_has_distinct_neighbours(nodes: int, degree: int) -> None:
    graph = directed(nodes, degree, Random(1))
    assert len(graph) == nodes
    for me, peers in enumerate(graph):
        assert len(set(peers)) == len(peers) == min(degree, nodes - 1)
        assert me not in peers


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 8, 10, 11, 30])
@pytest.mark.parametrize("degree", [1, 2, 4, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_in_a_symmetric_graph_neighbours_know_each_other(nodes: int, degree: int, seed: int) -> None:
    degree = min(degree, nodes - 1)
    if nodes * degree % 2:
        with pytest.raises(ConfigError, match=r"needs an even nodes \* degree"):
            symmetric(nodes, degree, Random(seed))
        return
    graph = symmetric(nodes, degree, Random(seed))
    for me, peers in enumerate(graph):
        assert len(set(peers)) == len(peers) == degree
        assert me not in peers
        assert all(me in graph[peer] for peer in peers)


def test_neighbours_are_drawn_uniformly() -> None:
    rng, times = Random(1), [0] * 6
    for _ in range(2_000):
        for peer in directed(6, 2, rng)[0]:
            times[peer] += 1
    assert times[0] == 0
    assert all(700 < count < 900 for count in times[1:])


def test_the_same_seed_draws_the_same_graph() -> None:
    assert symmetric(50, 4, Random(3)) == symmetric(50, 4, Random(3)) != symmetric(50, 4, Random(4))
