"""BRISA when processes fail, come back or were led astray: what holds again once things are at rest (section 6.13)."""

from collections import Counter
from random import Random

import pytest

from epicast.core.ids import NOBODY
from epicast.core.records import Kind, Level
from epicast.dissemination.brisa_messages import Data
from epicast.sim.world import World
from tests.support.overlays import FLOW, MS, SECOND, Overlay, complete, cycles, is_tree, random_edges, ring
from tests.support.worlds import grown, parents, stream

EDGES = random_edges(40, 5, seed=3)


def settled(seed: int = 1, edges: list[tuple[int, int]] = EDGES) -> Overlay:
    """A tree on an overlay with keep-alives, at rest."""
    overlay = Overlay(edges, seed=seed)
    overlay.publish()
    overlay.run(4 * SECOND)
    assert is_tree(overlay.parents())
    overlay.forget()
    return overlay


def children(overlay: Overlay, node: int) -> list[int]:
    return [child for child, parent in overlay.parents().items() if parent == node]


def busiest(overlay: Overlay) -> int:
    """The process with the most children, besides the source."""
    return max((node for node in overlay.nodes if node), key=lambda node: len(children(overlay, node)))


def check_at_rest(overlay: Overlay) -> None:
    """B-I2 and B-I3."""
    assert is_tree(overlay.parents())
    assert all(overlay.flow(node).repair is None for node in overlay.nodes)
    overlay.stream(2, every_us=2 * SECOND)  # spare links activated along the way are ended, one direction a message
    overlay.forget()
    overlay.publish()
    overlay.run(2 * SECOND)
    assert len(overlay.sends(Data)) == len(overlay.nodes) - 1
    assert overlay.duplicates() == 0


# Failures


@pytest.mark.parametrize("seed", range(4))
def test_after_a_failure_the_tree_is_whole_again_and_costs_what_a_tree_costs(seed: int) -> None:
    """B-I6."""
    overlay = settled(seed)
    victim = busiest(overlay)
    assert children(overlay, victim) != []
    overlay.crash(victim)
    overlay.run(10 * SECOND)
    check_at_rest(overlay)


@pytest.mark.parametrize("seed", range(4))
def test_nobody_misses_what_was_published_while_it_was_an_orphan(seed: int) -> None:
    """B-I6, with recovery: three failures in the middle of a stream."""
    overlay = settled(seed)
    for _ in range(3):
        overlay.crash(busiest(overlay))
        overlay.stream(10, every_us=200 * MS)
    overlay.run(10 * SECOND)
    expected = [(0, seq) for seq in range(31)]
    assert all(sorted(overlay.delivered[node]) == expected for node in overlay.nodes)
    check_at_rest(overlay)


def test_an_overlay_that_grew_by_itself_recovers_from_the_failure_of_a_quarter() -> None:
    """B-I6: every process that stays delivers every message, once; and there is a tree again."""
    world = grown("brisa", 96, settle_us=20 * SECOND, level=Level.DELIVERIES)
    stream(world, 3)
    for node in world.chance.sample([node for node in world.up if node], 24):
        world.call_at(world.now_us + 2 * SECOND, world.crash, node)
    stream(world, 30)
    world.run_until(world.now_us + 20 * SECOND)
    assert world.all_delivered()
    assert world.summary().repeated == 0
    assert is_tree(parents(world))


def test_processes_that_join_in_mid_stream_get_all_that_is_published_from_then_on() -> None:
    """B-I6, section 6.9."""
    world = grown("brisa", 48, settle_us=20 * SECOND, level=Level.DELIVERIES)
    stream(world, 5)
    for number in range(16):
        world.call_at(world.now_us + number * 300 * MS, world.join)
    stream(world, 40)
    world.run_until(world.now_us + 20 * SECOND)
    assert len(world.up) == 64
    assert world.all_delivered()
    assert world.summary().repeated == 0
    assert is_tree(parents(world))


# Repairs


@pytest.mark.parametrize("seed", range(4))
def test_every_orphan_is_repaired_either_softly_or_hard(seed: int) -> None:
    """B-I7: soft and hard repairs make up all; who lost its parent was an orphan, and nobody else."""
    overlay = settled(seed)
    victims = [node for node in overlay.nodes if node % 8 == 3]
    orphans = {child for victim in victims for child in children(overlay, victim)} - set(victims)
    overlay.crash(*victims)
    overlay.run(1 * SECOND + 1 * MS)  # the failures have just been noticed
    lost = [node for node, record in overlay.recorded(Kind.PARENT) if record.peer == NOBODY]
    assert orphans <= set(lost)
    overlay.run(30 * SECOND)
    lost = [node for node, record in overlay.recorded(Kind.PARENT) if record.peer == NOBODY]
    repairs = overlay.recorded(Kind.REPAIR)
    assert sorted(node for node, _ in repairs) == sorted(lost)
    assert {record.detail for _, record in repairs} <= {"soft", "hard"}
    assert is_tree(overlay.parents())


def test_the_failure_of_a_leaf_orphans_nobody() -> None:
    """B-I7."""
    overlay = settled()
    leaf = next(node for node in overlay.nodes if node and not children(overlay, node))
    overlay.crash(leaf)
    overlay.run(10 * SECOND)
    assert overlay.recorded(Kind.PARENT) == overlay.recorded(Kind.REPAIR) == []


def test_hard_repairs_turn_a_subtree_around_as_far_as_the_first_way_out() -> None:
    """Section 6.9: on a ring the orphan's other neighbour hangs on it, and so on down to the last of its subtree, which
    has a neighbour outside. That one repairs softly, the others become the children of their former children."""
    overlay = settled(edges=ring(10))
    victim = children(overlay, 0)[0]
    below = [node for node in overlay.nodes if victim in overlay.flow(node).path[:-1]]
    below.sort(key=lambda node: len(overlay.flow(node).path))
    assert len(below) >= 2
    overlay.crash(victim)
    overlay.run(20 * SECOND)
    found = {node: record.detail for node, record in overlay.recorded(Kind.REPAIR)}
    assert found == {**dict.fromkeys(below, "hard"), below[-1]: "soft"}
    assert [overlay.parents()[node] for node in below[:-1]] == below[1:]
    check_at_rest(overlay)


def test_an_orphan_with_many_neighbours_repairs_softly() -> None:
    """Section 6.9: with one message, from local knowledge."""
    overlay = settled(edges=complete(8))
    victim = busiest(overlay)
    assert children(overlay, victim) != []
    overlay.crash(victim)
    overlay.run(10 * SECOND)
    assert {record.detail for _, record in overlay.recorded(Kind.REPAIR)} == {"soft"}


CHURN_SEEDS = (1, 2, 3, 4)  # one run has a few dozen failures: too few to tell a rate by


@pytest.fixture(scope="module", params=[3, 5])
def churned(request: pytest.FixtureRequest) -> tuple[list[World], int]:
    """128 processes, of which so many in a hundred fail and as many join each minute, for five minutes; and how many
    failed in all runs."""
    runs = [under_churn(request.param, seed) for seed in CHURN_SEEDS]
    return [world for world, _ in runs], sum(failures for _, failures in runs)


def under_churn(percent: int, seed: int) -> tuple[World, int]:
    world = grown("brisa", 128, seed=seed, settle_us=20 * SECOND, level=Level.DELIVERIES)
    stream(world, 2)
    each_us = 60 * SECOND * 100 // (128 * percent)
    count = 5 * 60 * SECOND // each_us
    for number in range(count):
        world.call_at(world.now_us + number * each_us, _fail_and_join, world)
    for number in range(300):
        world.call_at(world.now_us + number * SECOND, world.publish, 0, "t", b"payload")
    world.run_until(world.now_us + 330 * SECOND)
    return world, count


def repairs_of(worlds: list[World]) -> Counter[str]:
    return sum((Counter(world.summary().repairs) for world in worlds), Counter())


def _fail_and_join(world: World) -> None:
    world.crash(world.chance.choice([node for node in world.up if node]))
    world.join()


def test_churn_costs_about_one_parent_for_each_failure(churned: tuple[list[World], int]) -> None:
    """BR-8, table 4.1: between 0.5 and 1.5 times X N a minute, and as many repairs."""
    worlds, failures = churned
    repairs = repairs_of(worlds)
    assert 0.5 * failures <= repairs["parents_lost"] <= 1.5 * failures
    done = repairs["soft"] + repairs["hard"]
    assert repairs["parents_lost"] >= done >= repairs["parents_lost"] - 3 * len(worlds)


def test_most_repairs_are_soft(churned: tuple[list[World], int]) -> None:
    """BR-8, table 4.1: three quarters at least."""
    repairs = repairs_of(churned[0])
    assert repairs["soft"] >= 0.75 * (repairs["soft"] + repairs["hard"])


def test_no_message_is_lost_by_those_who_stay(churned: tuple[list[World], int]) -> None:
    """BR-8, B-I6."""
    for world in churned[0]:
        assert world.all_delivered()
        assert world.summary().gaps == 0
        assert is_tree(parents(world))


# Cycles and lost processes


def lead_astray(overlay: Overlay, node: int, parent: int, path: tuple[int, ...]) -> None:
    """Behind the protocol's back: the process has this parent, and nobody else sends to it."""
    flow = overlay.flow(node)
    flow.parent, flow.parent_path, flow.path, flow.downstream = parent, path, (*path, node), None
    for peer in overlay.views()[node]:
        if peer != parent:
            overlay.flow(peer).discard_out(node)
    overlay.flow(parent).add_out(node)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("data", ["with data", "without data"])
def test_a_cycle_that_no_data_reach_is_broken(size: int, data: str) -> None:
    """B-I11, E-B4: its members believe paths that look sound."""
    overlay = settled(edges=[*complete(9), (8, 9)])
    ringed = list(range(2, 2 + size))
    for node, parent in zip(ringed, [*ringed[1:], ringed[0]], strict=True):
        lead_astray(overlay, node, parent, (0, 1, parent))
    assert cycles(overlay.parents()) == ringed
    if data == "with data":
        overlay.stream(15)
    overlay.run(15 * SECOND)
    assert cycles(overlay.parents()) == []
    assert is_tree(overlay.parents())
    if data == "with data":
        assert all(sorted(got) == [(0, seq) for seq in range(16)] for got in overlay.delivered.values())


@pytest.mark.parametrize("seed", range(6))
def test_from_any_parents_and_paths_whatsoever_a_tree_emerges(seed: int) -> None:
    """B-I11: no quiescent state has a cycle, or a process that has no parent and looks for none."""
    overlay, chance = settled(seed), Random(seed)
    for node, peers in overlay.views().items():
        if node:
            parent = chance.choice(peers)
            between = chance.sample([n for n in overlay.nodes if n not in (0, node, parent)], chance.randrange(4))
            lead_astray(overlay, node, parent, (0, *between, parent) if parent else (0,))
    assert not is_tree(overlay.parents())
    overlay.run(60 * SECOND)
    assert is_tree(overlay.parents())
    check_at_rest(overlay)


@pytest.mark.parametrize("seed", range(3))
def test_an_orphan_that_forgot_to_look_for_a_parent_is_reminded(seed: int) -> None:
    """B-I11."""
    overlay = settled(seed)
    for node in (5, 6, 7):
        flow = overlay.flow(node)
        overlay.flow(flow.parent).discard_out(node)  # type: ignore[arg-type]
        flow.parent, flow.parent_path, flow.downstream = None, (), None
    overlay.run(15 * SECOND)
    assert is_tree(overlay.parents())
    check_at_rest(overlay)


def test_a_process_that_its_parent_forgot_is_served_again() -> None:
    """B-I11, E-B2: the parent believes that it does not want the flow."""
    overlay = settled()
    node = next(node for node in overlay.nodes if node and children(overlay, node))
    parent = overlay.parents()[node]
    assert parent is not None
    overlay.flow(parent).discard_out(node)
    overlay.stream(10)
    overlay.run(5 * SECOND)
    assert all(sorted(got) == [(0, seq) for seq in range(11)] for got in overlay.delivered.values())
    check_at_rest(overlay)


def test_failures_at_the_same_moment_leave_no_cycle_behind() -> None:
    """E-B5: eight of forty processes at once, again and again; with the taint rule no cycle outlasts its repair."""
    for seed in range(8):
        overlay = settled(seed)
        overlay.crash(*Random(seed).sample([node for node in overlay.nodes if node], 8))
        overlay.run(40 * SECOND)
        found = overlay.parents(FLOW)
        assert cycles(found) == [], f"seed {seed}"
        assert is_tree(found), f"seed {seed}"
