"""EpTO over round trips that were measured between PlanetLab hosts: delays depend on who throws at whom, so some are
always last. Needs the data, which is not part of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from epicast.core.records import Level
from tests.pipeline.measured import measured, simulated

PLANETLAB = Path(__file__).parents[3] / "shared" / "data" / "planetlab_rtt_ms.csv.gz"


@pytest.mark.skipif(not PLANETLAB.exists(), reason="needs the PlanetLab round trips in ../shared/data")
@pytest.mark.parametrize("clock", ["global", "logical"])
def test_measured_round_trips_leave_no_holes_and_one_order(clock: str, tmp_path: Path) -> None:
    """A hundred of the hosts, every tenth publishing in a round of 125 ms, with the document's K and TTL."""
    run = simulated(
        tmp_path,
        Level.DELIVERIES,
        nodes=100,
        stack={
            "membership": {"protocol": "static"},
            "dissemination": {"protocol": "balls", "clock": clock, "fanout": 17, "rounds": 7, "drift": 0.1},
            "ordering": {"protocol": "epto"},
        },
        latency=f"matrix '{PLANETLAB}' assignment=shuffled",
        network={"transport": "datagram"},
        joins={"degree": 99},
        workload={"pattern": "poisson", "messages": 150, "rate": 80, "sources": 100, "source_order": "random"},
    )
    found = measured(run).metrics
    assert (found["holes"], found["order_kept_min"], found["delivery_ratio"]) == (0, 1.0, 1.0)
