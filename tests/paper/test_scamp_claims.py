"""What Scamp overlays are like: the law of their degree, copies that last, and how they heal (reference, section 2)."""

from __future__ import annotations

from math import log

import pytest

from epicast.core.records import Kind, Level
from epicast.membership.scamp import Scamp
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from tests.support.overlays import SECOND
from tests.support.worlds import Rows, degrees, grown, joining, reached, views

PLAIN = {"heartbeat_us": 0, "lease_us": 0}  # nothing but the listing


def arcs(world: World) -> int:
    return sum(degrees(views(world)))


def weakly_connected(neighbours: dict[int, list[int]]) -> bool:
    both: dict[int, list[int]] = {node: [] for node in neighbours}
    for node, peers in neighbours.items():
        for peer in peers:
            if peer in both:
                both[node].append(peer)
                both[peer].append(node)
    return len(reached(both, next(iter(both)))) == len(both)


def one_by_one(nodes: int, **settings: object) -> World:
    """Each joins when the copies of the one before have come to rest, as the law assumes."""
    overrides = {"membership": {**PLAIN, **settings}}
    world = World(Scenario(stack="scamp-flood", nodes=nodes, latency="constant 1ms", overrides=overrides), 1)
    for number in range(nodes):
        world.call_at(number * SECOND, world.join)
    world.run_until((nodes + 5) * SECOND)
    return world


@pytest.mark.parametrize("c", [0, 1, 2])
def test_the_mean_degree_grows_with_the_logarithm_of_the_size(c: int) -> None:
    """E-CLON-2: about (c + 1) ln N, which is not log10 N + c."""
    means = {n: arcs(one_by_one(n, copies=float(c))) / n for n in (100, 800)}
    for n, mean in means.items():
        assert mean == pytest.approx((c + 1) * log(n), rel=0.35)
    growth = (means[800] - means[100]) / (log(800) - log(100))
    assert growth == pytest.approx(c + 1, rel=0.5)


def test_a_target_degree_is_met_whatever_the_size() -> None:
    for n in (100, 800):
        assert arcs(one_by_one(n, target_degree=9)) / n == pytest.approx(9, rel=0.1)


def test_every_copy_becomes_an_arc_or_is_counted() -> None:
    """Invariant 1: as many arcs as copies and joiners' own links."""
    world = joining("scamp-flood", 200, level=Level.FULL, membership={**PLAIN, "target_degree": 6})
    rows = Rows(world)
    world.run_until(60 * SECOND)
    given_up = sum(rows.by_node(Kind.NONSENSE).values())
    second = 1  # the first two took each other in, without copies
    few = 12  # a contact that knows nobody but the joiner sends itself one copy only
    wanted = 199 + 5 * 198 + second
    assert wanted - few * 5 <= arcs(world) + given_up <= wanted


def test_views_hold_nobody_twice_and_not_oneself() -> None:
    """Invariant 3."""
    world = grown("scamp-flood", 300)
    for node, peers in views(world).items():
        assert len(set(peers)) == len(peers)
        assert node not in peers


def test_nothing_is_sent_when_nothing_changes() -> None:
    """Invariant 4, without the heartbeats and leases that the listing does not have."""
    world = joining("scamp-flood", 100, level=Level.FULL, membership=PLAIN)
    rows = Rows(world)
    world.run_until(60 * SECOND)
    before = sum(rows.by_node(Kind.SEND).values())
    world.run_until(120 * SECOND)
    assert sum(rows.by_node(Kind.SEND).values()) == before > 0


def test_the_oldest_know_most() -> None:
    """Invariant 5."""
    world = grown("scamp-flood", 400, membership=PLAIN)
    sizes = views(world)
    oldest = sum(len(sizes[node]) for node in range(40)) / 40
    newest = sum(len(sizes[node]) for node in range(360, 400)) / 40
    assert oldest > 3 * newest


def test_leases_neither_add_nor_lose_arcs_for_long() -> None:
    """The rule of the Scamp paper would add c arcs a process with every lease."""
    world = grown("scamp-flood", 150, membership={"lease_us": 20 * SECOND, "copies": 2.0}, settle_us=5 * SECOND)
    before = arcs(world)
    world.run_until(world.now_us + 200 * SECOND)  # ten leases
    assert arcs(world) == pytest.approx(before, rel=0.3)
    assert weakly_connected(views(world))


def test_half_of_the_processes_may_leave() -> None:
    world = grown("scamp-flood", 200)
    for node in range(1, 200, 2):
        world.call_at(world.now_us + node * 50_000, world.leave, node)
    world.run_until(world.now_us + 60 * SECOND)
    left = views(world)
    assert len(left) == 100
    assert weakly_connected(left)
    assert all(peer % 2 == 0 for peers in left.values() for peer in peers), "nobody holds on to those that left"


def test_after_crashes_the_dead_are_forgotten_and_the_isolated_come_back() -> None:
    world = grown("scamp-flood", 200, membership={"lease_us": 40 * SECOND})
    for node in range(100, 200):
        world.call_at(world.now_us + 1, world.crash, node)
    world.run_until(world.now_us + 120 * SECOND)
    left = views(world)
    assert len(left) == 100
    assert weakly_connected(left)
    known = {peer for peers in left.values() for peer in peers}
    assert all(node in known for node in left), "nobody is isolated"
    dead = sum(peer not in left for peers in left.values() for peer in peers)
    assert dead == 0


def test_a_joiner_whose_contacts_are_dead_tries_others() -> None:
    world = grown("scamp-flood", 20)
    process = world.nodes[3].membership
    assert isinstance(process, Scamp)
    for peer in list(process.view):
        process.on_link_down(peer)
    world.run_until(world.now_us + 30 * SECOND)
    assert process.peers()
