"""What Cyclon's overlays are like: full views, even fame, and the dead gone soon (reference, section 3)."""

from __future__ import annotations

from collections import Counter

from epicast.sim.world import World
from tests.support.overlays import SECOND
from tests.support.worlds import grown, views

VIEW, PERIOD = 10, 1 * SECOND
SETTINGS = {"view_size": VIEW, "exchange_size": 5, "exchange_interval_us": PERIOD, "reply_timeout_us": 500_000}


def settled(nodes: int = 150, seed: int = 1) -> World:
    return grown("cyclon-flood", nodes, seed=seed, membership=SETTINGS, settle_us=60 * SECOND)


def known_by(world: World) -> Counter[int]:
    return Counter(peer for peers in views(world).values() for peer in peers)


def test_views_fill_up_and_keep_to_their_size() -> None:
    sizes = [len(peers) for peers in views(settled()).values()]
    assert max(sizes) <= VIEW
    assert sum(sizes) / len(sizes) > 0.9 * VIEW


def test_everybody_is_known_to_about_as_many() -> None:
    world = settled()
    fame = known_by(world)
    counts = [fame[node] for node in world.nodes]
    assert min(counts) >= 1
    assert max(counts) <= 3 * VIEW


def test_links_are_neither_made_nor_lost_by_exchanges_alone() -> None:
    world = settled()
    before = sum(known_by(world).values())
    world.run_until(world.now_us + 60 * SECOND)
    assert abs(sum(known_by(world).values()) - before) <= 0.05 * before


def test_views_are_mixed_all_the_time() -> None:
    world = settled()
    before = views(world)
    world.run_until(world.now_us + 20 * PERIOD)
    after = views(world)
    same = sum(len(set(before[node]) & set(after[node])) for node in before)
    assert same < 0.5 * sum(map(len, before.values()))


def test_the_dead_are_forgotten_within_some_periods() -> None:
    world = settled()
    for node in range(75, 150):
        world.call_at(world.now_us + 1, world.crash, node)
    world.run_until(world.now_us + 3 * VIEW * PERIOD)
    left = views(world)
    assert len(left) == 75
    assert sum(peer not in left for peers in left.values() for peer in peers) == 0
    assert all(left.values())
