"""The probability that nothing comes before a waiting event, compared with what then came."""

from typing import Any

import pytest

from epicast.core.records import Level
from epicast.ordering.epto import Epto
from epicast.sim.scenario import Scenario
from epicast.sim.world import World

WATCHED = 6  # processes


class Watch:
    """Of some processes: the odds of what waits, round by round, and when each event came."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.claims: list[tuple[int, int, bytes, float]] = []  # process, round, key, odds
        self.came: dict[tuple[int, bytes], int] = {}  # in which round of the process

    def begin(self) -> None:
        for node in range(WATCHED):
            order = self.world.nodes[node].order
            assert isinstance(order, Epto)
            order.balls.on_round = self._watched(node, order)

    def _watched(self, node: int, order: Epto) -> Any:
        def on_round(levels: Any) -> None:
            order.on_round(levels)
            now = order.balls.round
            for key in order.order.pending:
                self.came.setdefault((node, key), now)
            self.claims += [(node, now, each.key, each.probability) for each in order.waiting()]

        return on_round

    def outcomes(self) -> list[tuple[float, bool]]:
        """What was said, and whether nothing came before it afterwards."""
        by_node: dict[int, list[tuple[bytes, int]]] = {}
        for (node, key), when in self.came.items():
            by_node.setdefault(node, []).append((key, when))
        return [
            (odds, not any(other < key and when > now for other, when in by_node[node]))
            for node, now, key, odds in self.claims
        ]


@pytest.mark.parametrize("clock", ["global", "logical"])
def test_the_odds_are_about_right_and_safe_where_they_are_high(clock: str) -> None:
    world = World(
        Scenario.load(
            {
                "stack": "epto",
                "overrides": {"dissemination": {"clock": clock}},
                "nodes": 60,
                "latency": "quantiles planetlab-epto",
                "network": {"transport": "datagram"},
                "warmup": "10s",
                "workload": {"messages": 240, "pattern": "poisson", "rate": 24, "sources": 60, "payload_bytes": 8},
            }
        ),
        11,
        level=Level.DELIVERIES,
    )
    watch = Watch(world)
    world.call_at(5_000_000, watch.begin)
    world.run()
    outcomes = watch.outcomes()[500:]  # by then it has seen something
    assert len(outcomes) > 3_000
    shares = []
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        said = [(odds, right) for odds, right in outcomes if low <= odds < high]
        assert len(said) > 100
        came_true = sum(right for _, right in said) / len(said)
        assert came_true >= sum(odds for odds, _ in said) / len(said)  # on the safe side
        shares.append(came_true)
    # They tell something: what was said to be unlikely was, and what was said to be sure was.
    assert shares == sorted(shares)
    assert shares[0] < 0.8
    assert shares[-1] > 0.99
