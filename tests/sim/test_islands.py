"""Islands: some processes whose links lead to each other only, each content with its number of neighbours.

A newcomer waits for seconds for its contact, and others join through it meanwhile: their walks stay among them. The few
links to the rest are then shed one by one. Measured round trips have such slow contacts: with these seeds, islands of
five lasted for up to two minutes before neighbours were exchanged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from epicast.core.records import Level
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import MS, SECOND
from tests.support.worlds import reached, views

PLANETLAB = Path(__file__).parents[3] / "shared" / "data" / "planetlab_rtt_ms.csv.gz"
NODES = 300


@pytest.mark.skipif(not PLANETLAB.exists(), reason=f"needs the round trips in {PLANETLAB}")
@pytest.mark.parametrize("seed", [8, 10, 35])
def test_no_island_lasts(seed: int) -> None:
    scenario = Scenario.load({"stack": "brisa", "nodes": NODES, "latency": f"matrix {PLANETLAB}"})
    world = World(scenario, seed, level=Level.OFF)
    for number in range(NODES):
        world.call_at(number * 10 * MS, world.join)
    for after_s in (40, 60, 90, 120):
        world.run_until(NODES * 10 * MS + after_s * SECOND)
        assert len(reached(views(world), 0)) == NODES, f"{after_s} s after the last one came up"
