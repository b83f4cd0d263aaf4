"""SimpleGossip (document 000, table 4.2): rumors to ln N processes over Cyclon, and anti-entropy for the rest."""

from __future__ import annotations

from math import ceil, log
from typing import Any

import pytest

from epicast import simulate
from epicast.core.records import Kind, Level
from epicast.sim.summary import Summary
from epicast.stacks import stack as stacks
from tests.support.overlays import MS, SECOND
from tests.support.worlds import grown

NODES, MESSAGES = 128, 50
FANOUT = ceil(log(NODES))
RUMORS_ONLY = {"dissemination": {"expected_nodes": NODES, "pull": "none"}}


@pytest.fixture(scope="module")
def quiet() -> Summary:
    return gossip()


def gossip(**settings: Any) -> Summary:
    overrides = {"dissemination": {"expected_nodes": NODES}}
    return simulate("simple-gossip", **{"nodes": NODES, "messages": MESSAGES, "overrides": overrides, **settings})


def test_a_message_costs_the_fanout_for_each_process(quiet: Summary) -> None:
    """Section 7.1: N times the fanout, so that everyone has about fanout - 1 duplicates."""
    assert quiet.messages_by_type["Rumor"] == pytest.approx(NODES * MESSAGES * FANOUT, rel=0.02)
    assert quiet.duplicates_per_delivery == pytest.approx(FANOUT - 1, abs=0.15)
    assert quiet.messages_by_type.get("Copy", 0) < 0.05 * NODES * MESSAGES, "rumors leave little to anti-entropy"


def test_rumors_alone_miss_some_and_anti_entropy_reaches_them(quiet: Summary) -> None:
    """Section 7.1: complete in the end, thanks to pulling."""
    alone = gossip(overrides=RUMORS_ONLY, drain="2s")
    assert alone.missing
    assert alone.delivery_ratio is not None
    assert alone.delivery_ratio > 0.97
    assert quiet.missing == 0
    assert quiet.repeated == 0


def test_a_process_pulls_twice_as_often_as_messages_come() -> None:
    """Section 7.1: ten times a second for five messages."""
    world = grown("simple-gossip", 40, settle_us=10 * SECOND, level=Level.FULL)
    pulls = {kind.__name__: tally[0] for kind, tally in world.engine.sent.items()}.get("Pull", 0)
    world.run_until(world.now_us + 10 * SECOND)
    later = {kind.__name__: tally[0] for kind, tally in world.engine.sent.items()}["Pull"]
    assert (later - pulls) / 40 / 10 == pytest.approx(10, rel=0.02)
    assert world.engine.counts[Kind.DUPLICATE] == 0


def test_anti_entropy_carries_no_payload_where_nothing_lacks(quiet: Summary) -> None:
    sent = quiet.messages_by_type
    assert sent["Pull"] > 20 * sent.get("Digest", 0)
    assert sent.get("Want", 0) <= sent.get("Digest", 0) + sent["Pull"] / 50


@pytest.mark.parametrize(
    "trouble",
    [
        {"network": {"transport": "datagram", "loss": 0.2}},
        {"fault": [{"kind": "partition", "at": "1s", "until": "6s", "fraction": 0.3}]},
        {"churn": "const churn 10% each 5s"},
    ],
    ids=["a fifth is lost", "a partition", "churn"],
)
def test_everyone_has_everything_in_the_end(trouble: dict[str, Any]) -> None:
    summary = gossip(nodes=64, **trouble)
    assert summary.missing == 0
    assert summary.repeated == 0
    without = gossip(nodes=64, **trouble, overrides=RUMORS_ONLY, drain="2s")
    assert without.missing


def test_a_newcomer_is_not_told_the_whole_past() -> None:
    """It is owed what is published from its coming on, and gets little more."""
    world = grown("simple-gossip", 40, settle_us=10 * SECOND)
    for number in range(100):
        world.call_at(world.now_us + number * 200 * MS, world.publish, 0, "t", b"payload")
    world.run_until(world.now_us + 15 * SECOND)
    newcomer = world.join()
    world.run_until(world.now_us + 15 * SECOND)
    assert world.all_delivered()
    (window,) = (w for source, w in world.nodes[newcomer].dissemination.seen.items() if source == 0)  # type: ignore[attr-defined]
    missed = 100 - (window.next - window.first) - len(window.before or ()) - len(window.ahead)
    assert 60 <= missed <= 75, "75 were published before it came, and some of them were still spreading"


def test_the_stack_promises_agreement() -> None:
    assert "agreement" in stacks.load("simple-gossip").promises
