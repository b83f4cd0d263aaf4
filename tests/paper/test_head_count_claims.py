"""EpTO's processes are told nothing about the size of the system, which the document takes as known (E-E16): what they
count themselves gives the K and TTL of its table, give or take one."""

from __future__ import annotations

import pytest

from epicast.core.balls_and_bins import fanout, rounds
from epicast.dissemination.balls import Balls
from tests.support.overlays import SECOND
from tests.support.worlds import grown

SPREAD = 1 / 62**0.5  # of an estimate from 64 marks: 13 %


@pytest.mark.parametrize("nodes", [60, 240])
def test_processes_count_themselves_well_enough_for_fanout_and_rounds(nodes: int) -> None:
    world = grown("epto", nodes, settle_us=12 * SECOND)
    balls = [part.dissemination for part in world.nodes.values()]
    assert len(balls) == nodes
    for each in balls:
        assert isinstance(each, Balls)
        assert abs(each.heads.estimate / nodes - 1) < 4 * SPREAD
        assert abs(each.fanout - fanout(nodes)) <= 1
        assert abs(each.ttl - rounds(nodes, each.config.c)) <= 1
