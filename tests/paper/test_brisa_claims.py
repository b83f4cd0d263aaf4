"""The invariants of BRISA on overlays that hold still (reference, section 6.13), and the shapes of its trees."""

from collections import Counter
from itertools import pairwise
from math import log
from random import Random

import pytest

from epicast.dissemination.brisa import BrisaConfig
from epicast.dissemination.brisa_messages import UPWARD, Activate, Data, Deactivate
from epicast.sim.tree import TreeShape, shape
from epicast.sim.world import World
from tests.support.overlays import (
    FLOW,
    MS,
    SECOND,
    Delays,
    Edge,
    Overlay,
    chain,
    complete,
    cycles,
    is_tree,
    random_edges,
    ring,
    star,
    while_running,
)
from tests.support.worlds import degrees, grown, parents, stream, views

GRAPHS = {
    "ring": ring(11),
    "star": star(9),
    "complete": complete(8),
    "regular of degree 4": random_edges(40, 4),
    "regular of degree 7": random_edges(30, 7),
}
every_graph = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
CONFIGS = {
    "symmetric": BrisaConfig(),
    "not symmetric": BrisaConfig(symmetric=False),
    "delay-aware": BrisaConfig(strategy="delay-aware"),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


def emerged(edges: list[Edge], config: BrisaConfig | None = None, *, static: bool = True, **how: object) -> Overlay:
    """After the first message, at rest."""
    overlay = Overlay(edges, config=config, static=static, **how)  # type: ignore[arg-type]
    overlay.publish()
    overlay.run(5 * SECOND)
    return overlay


# Emergence


@every_graph
@every_config
def test_the_first_message_costs_as_much_as_flooding(edges: list[Edge], config: BrisaConfig) -> None:
    """B-I1: 2E - (N - 1) transmissions, 2E - 2(N - 1) duplicates."""
    overlay = emerged(edges, config)
    links, nodes = len(edges), len(overlay.nodes)
    assert len(overlay.sends(Data)) == 2 * links - (nodes - 1)
    assert overlay.duplicates() == 2 * links - 2 * (nodes - 1)


@every_graph
@every_config
def test_one_parent_each_and_all_lead_to_the_source(edges: list[Edge], config: BrisaConfig) -> None:
    """B-I2: and the links that carry payload are the N - 1 of the tree."""
    overlay = emerged(edges, config)
    assert is_tree(overlay.parents())
    carrying = {(me, peer) for me in overlay.nodes for peer in overlay.flow(me).targets()}
    assert carrying == {(parent, child) for child, parent in overlay.parents().items()}
    for me in overlay.nodes:
        in_tree = {overlay.parents().get(me), *(child for parent, child in carrying if parent == me)} - {None}
        assert set(overlay.flow(me).in_active) == in_tree


@every_graph
@every_config
def test_later_messages_cost_one_transmission_for_each_receiver(edges: list[Edge], config: BrisaConfig) -> None:
    """B-I3: N - 1 transmissions, no duplicate, everyone delivers once; the tree stays as it is."""
    overlay = emerged(edges, config)
    before = overlay.parents()
    for _ in range(5):
        overlay.forget()
        overlay.publish()
        overlay.run(2 * SECOND)
        assert len(overlay.sends(Data)) == len(overlay.nodes) - 1
        assert overlay.duplicates() == 0
    assert overlay.parents() == before
    assert all(got == [(0, seq) for seq in range(6)] for got in overlay.delivered.values())


def test_messages_that_follow_closely_cost_no_more_than_their_flood() -> None:
    """B-I3: while the tree emerges messages may overtake its making; afterwards the cost is N - 1 again."""
    overlay = Overlay(random_edges(40, 4), static=True)
    overlay.stream(10, every_us=5 * MS)
    overlay.run(5 * SECOND)
    assert all(sorted(got) == [(0, seq) for seq in range(10)] for got in overlay.delivered.values())
    overlay.forget()
    overlay.publish()
    overlay.run(2 * SECOND)
    assert (len(overlay.sends(Data)), overlay.duplicates()) == (39, 0)
    assert is_tree(overlay.parents())


@every_graph
def test_the_path_that_a_message_carries_is_the_real_chain_of_parents(edges: list[Edge]) -> None:
    """B-I4: of its sender at that moment; and nobody is in its parent's path."""
    overlay = Overlay(edges, static=True)
    overlay.publish()
    checked = 0
    for _ in range(400):
        overlay.run(1 * MS)
        known = {me: node.dissemination.parents().get(FLOW) for me, node in overlay.nodes.items() if me}  # type: ignore[attr-defined]
        for sent in overlay.sends(Data)[checked:]:
            assert sent.msg.path == chain(known, sent.src)
            checked += 1
    assert checked == len(overlay.sends(Data)) >= len(overlay.nodes) - 1
    for me, parent in overlay.parents().items():
        assert parent is not None
        assert me not in overlay.flow(parent).path


@every_graph
def test_active_views_do_not_change_when_links_are_deactivated_and_activated(edges: list[Edge]) -> None:
    """B-I5: inactive links stay in the overlay, to repair from."""
    overlay = Overlay(edges, static=False)
    before = overlay.views()
    overlay.publish()
    overlay.run(3 * SECOND)
    if len(edges) >= len(overlay.nodes):
        assert overlay.sends(Deactivate) != []
    for me, node in overlay.nodes.items():
        for peer in before[me]:
            node.dissemination.on_activate(peer, Activate(FLOW))  # type: ignore[attr-defined]
    overlay.run(3 * SECOND)
    assert overlay.views() == before


# Deactivation


@pytest.mark.parametrize("seed", range(5))
def test_without_the_optimisation_every_spare_link_is_deactivated_from_both_ends(seed: int) -> None:
    """Section 6.5: exactly 2(E - N + 1)."""
    overlay = emerged(random_edges(40, 4, seed), BrisaConfig(symmetric=False), seed=seed)
    assert len(overlay.sends(Deactivate)) == 2 * (80 - 40 + 1)


@pytest.mark.parametrize("seed", range(5))
def test_symmetric_deactivation_costs_no_more_than_that(seed: int) -> None:
    """Section 6.5: between E - N + 1 and 2(E - N + 1)."""
    overlay = emerged(random_edges(40, 4, seed), seed=seed)
    assert 80 - 40 + 1 <= len(overlay.sends(Deactivate)) <= 2 * (80 - 40 + 1)


def test_symmetric_deactivation_spares_duplicates_when_messages_follow_closely() -> None:
    """Section 6.5: a process stops sending at once, not only when it is told to."""
    duplicates = {}
    for symmetric in (True, False):
        overlay = Overlay(random_edges(40, 4), config=BrisaConfig(symmetric=symmetric), static=True)
        overlay.stream(10, every_us=30 * MS)
        overlay.run(5 * SECOND)
        duplicates[symmetric] = overlay.duplicates()
    assert duplicates[True] < duplicates[False]


# Strategies


def delays_of(edges: list[Edge], seed: str) -> dict[Edge, int]:
    return {edge: Random(f"{seed} {edge}").randrange(5, 100) * MS for edge in edges}


def mean_way_us(overlay: Overlay, delays: Delays) -> float:
    """Along the tree, from the source to each of the others."""
    known, total = overlay.parents(), 0
    for me in known:
        way = chain(known, me)
        total += sum(delays.delay_us(*hop, Random()) for hop in pairwise(way))
    return total / len(known)


@pytest.mark.parametrize("seed", range(4))
def test_delay_aware_parents_follow_the_delays_and_those_who_came_first_do_not(seed: int) -> None:
    """Section 6.8, figure 4.4, over the whole way (E-B16): the flood finds the quickest tree, then routes change. The
    tree is whole all the time, gets no deeper, and costs no more at rest."""
    edges = random_edges(40, 5, seed + 1)
    mean_us, depth = {}, {}
    for strategy in ("first-come", "delay-aware"):
        delays = Delays(50 * MS, delays_of(edges, f"{seed} before"))
        overlay = Overlay(edges, config=BrisaConfig(strategy=strategy), latency=delays)  # type: ignore[arg-type]
        overlay.run(4 * SECOND)  # round trips are measured
        overlay.publish()
        overlay.run(1 * SECOND)
        before = overlay.parents()
        delays.special_us = delays_of(edges, f"{seed} after")
        while_running(overlay, 120 * SECOND, 20 * MS, lambda known=overlay: check_no_cycle(known))  # type: ignore[misc]
        overlay.forget()
        overlay.publish()
        overlay.run(2 * SECOND)
        assert is_tree(overlay.parents())
        assert (overlay.parents() == before) is (strategy == "first-come")
        assert (len(overlay.sends(Data)), overlay.duplicates()) == (39, 0)
        mean_us[strategy] = mean_way_us(overlay, delays)
        depth[strategy] = max(len(overlay.flow(me).path) for me in overlay.nodes)
    assert mean_us["delay-aware"] < 0.75 * mean_us["first-come"]
    assert depth["delay-aware"] <= 1.5 * depth["first-come"]


def test_nobody_changes_the_quickest_tree() -> None:
    """The flood took the quickest ways, as long as delays stay what they are."""
    edges = random_edges(40, 5)
    delays = Delays(50 * MS, delays_of(edges, "before"))
    overlay = Overlay(edges, config=BrisaConfig(strategy="delay-aware"), latency=delays)
    overlay.run(4 * SECOND)
    overlay.publish()
    overlay.run(2 * SECOND)
    before = overlay.parents()
    overlay.stream(60)
    assert overlay.parents() == before


def check_no_cycle(overlay: Overlay) -> None:
    assert cycles(overlay.parents()) == []


# Bootstrap


def test_an_empty_message_builds_the_tree_and_nobody_delivers_it() -> None:
    """Section 6.4: flooding something small instead of the first payload."""
    overlay = Overlay(random_edges(40, 4), static=True)
    overlay.nodes[0].dissemination.bootstrap("t")  # type: ignore[attr-defined]
    overlay.run(5 * SECOND)
    assert is_tree(overlay.parents())
    assert not any(overlay.delivered.values())
    overlay.forget()
    overlay.publish()
    overlay.run(2 * SECOND)
    assert (len(overlay.sends(Data)), overlay.duplicates()) == (39, 0)
    assert all(got == [(0, 1)] for got in overlay.delivered.values())


# Several trees


def state_of(overlay: Overlay, flow: tuple[int, int]) -> dict[int, tuple[object, ...]]:
    found = {}
    for me in overlay.nodes:
        state = overlay.flow(me, flow)
        found[me] = (state.parent, state.path, dict(state.in_active), dict(state.out_active), dict(state.windows))
    return found


def test_flows_do_not_touch_each_other() -> None:
    """B-I8: a second tree is built, used and used upward; the first one's records stay as they are."""
    overlay = emerged(random_edges(30, 4))
    before = state_of(overlay, FLOW)
    overlay.stream(3, node=7)
    overlay.nodes[9].dissemination.publish_on((7, 0), "t", b"x")  # type: ignore[attr-defined]
    overlay.run(2 * SECOND)
    assert is_tree(overlay.parents((7, 0)), root=7)
    assert state_of(overlay, FLOW) == before


def test_an_idle_tree_costs_nothing() -> None:
    """Section 6.10: no traffic besides that of the membership."""
    overlay = emerged(random_edges(30, 4))
    overlay.forget()
    overlay.run(60 * SECOND)
    assert overlay.sent == []


@every_graph
@pytest.mark.parametrize("publisher", [1, 6])
def test_an_upward_message_crosses_every_edge_of_the_tree_once(edges: list[Edge], publisher: int) -> None:
    """B-I9: N - 1 transmissions, all deliver once, no parent changes."""
    overlay = emerged(edges)
    before = overlay.parents()
    overlay.forget()
    overlay.nodes[publisher].dissemination.publish_on(FLOW, "t", b"x")  # type: ignore[attr-defined]
    overlay.run(5 * SECOND)
    crossed = Counter(frozenset((sent.src, sent.dst)) for sent in overlay.sends(Data))
    assert crossed == Counter(frozenset(edge) for edge in before.items())
    assert all(sent.msg.flags & UPWARD and sent.msg.path == () for sent in overlay.sends(Data))
    assert overlay.duplicates() == 0
    assert all(got.count((publisher, 0)) == 1 for got in overlay.delivered.values())
    assert overlay.parents() == before


def test_a_near_tree_is_reused_and_a_far_one_is_not() -> None:
    """B-I10: the number of flows does not grow where a known root is within reach."""
    overlay = emerged(random_edges(40, 4), BrisaConfig(reuse_depth=2))
    depth = {me: len(overlay.flow(me).path) - 1 for me in overlay.nodes}
    near = next(me for me in overlay.nodes if depth[me] == 2)
    far = next(me for me in overlay.nodes if depth[me] == 3)
    overlay.publish(near, topic="near")
    overlay.run(3 * SECOND)
    assert _flows(overlay) == {FLOW}
    overlay.publish(far, topic="far")
    overlay.run(3 * SECOND)
    assert _flows(overlay) == {FLOW, (far, 0)}
    assert all(len(got) == 3 for got in overlay.delivered.values())


def test_a_tree_of_a_split_stream_is_not_reused_for_another_part() -> None:
    """B-I10, section 6.11."""
    overlay = emerged(random_edges(20, 4), BrisaConfig(reuse_depth=9))
    for me in overlay.nodes:
        overlay.flow(me).siblings = frozenset({(0, 1)})
    overlay.publish(5, topic="other")
    overlay.run(3 * SECOND)
    assert _flows(overlay) == {FLOW, (5, 0)}


def _flows(overlay: Overlay) -> set[object]:
    return {flow for node in overlay.nodes.values() for flow in node.dissemination.flows}  # type: ignore[attr-defined]


# Shapes, at half the published size


SEEDS = (1, 2, 3)


def tree_of(world: World) -> TreeShape:
    return shape(0, {0: None, **parents(world)})


@pytest.fixture(scope="module")
def trees() -> dict[tuple[int, int], tuple[TreeShape, World]]:
    """By the size of the active view and the seed."""
    found = {}
    for size in (4, 8):
        for seed in SEEDS:
            world = grown("brisa", 256, seed=seed, settle_us=30 * SECOND, membership={"active_size": size})
            stream(world, 5)
            found[size, seed] = tree_of(world), world
    return found


def test_larger_views_make_shallower_trees(trees: dict[tuple[int, int], tuple[TreeShape, World]]) -> None:
    """BR-2, figure 4.7: the deepest leaves on average, the mean every time; no chains, at most 4 log_d N deep."""
    for seed in SEEDS:
        narrow, wide = trees[4, seed][0], trees[8, seed][0]
        assert narrow.orphans == wide.orphans == 0
        assert mean_depth(wide) < mean_depth(narrow)
        assert narrow.depth_max <= 4 * log(256, 4)
        assert wide.depth_max <= 4 * log(256, 8)
    assert sum(trees[8, seed][0].depth_max for seed in SEEDS) < sum(trees[4, seed][0].depth_max for seed in SEEDS)


def mean_depth(tree: TreeShape) -> float:
    assert tree.depth_mean is not None
    return tree.depth_mean


def test_larger_views_make_more_leaves(trees: dict[tuple[int, int], tuple[TreeShape, World]]) -> None:
    """BR-3, figure 4.8 (ii): by seed; the shares themselves on average."""
    shares = [(trees[4, seed][0].leaf_share, trees[8, seed][0].leaf_share) for seed in SEEDS]
    assert all(narrow < wide for narrow, wide in shares)
    narrow, wide = (sum(each) / len(SEEDS) for each in zip(*shares, strict=True))
    assert 0.35 <= narrow <= 0.50
    assert 0.50 <= wide <= 0.70


def test_no_process_has_more_children_than_links(trees: dict[tuple[int, int], tuple[TreeShape, World]]) -> None:
    """BR-3, figure 4.8 (iii): none above twice the target."""
    for (size, _), (tree, world) in trees.items():
        assert tree.degree_max <= max(degrees(views(world))) <= 2 * size


def test_sample_trees_of_100_processes_are_balanced() -> None:
    """BR-4, figure 4.9: without expansion nobody has more children than its view has room for; view 8 is shallower."""
    trees = {size: [_sample_tree(size, seed) for seed in SEEDS] for size in (4, 8)}
    for size, found in trees.items():
        assert all(tree.orphans == 0 and tree.degree_max <= size for tree in found)
    assert sum(tree.depth_max for tree in trees[8]) < sum(tree.depth_max for tree in trees[4])
    assert all(mean_depth(wide) < mean_depth(narrow) for narrow, wide in zip(trees[4], trees[8], strict=True))


def _sample_tree(size: int, seed: int) -> TreeShape:
    settings = {"active_size": size, "expansion": 1.0}
    world = grown("brisa", 100, seed=seed, settle_us=30 * SECOND, membership=settings)
    stream(world, 5)
    return tree_of(world)
