"""The invariants of HyParView on overlays that grow, lose processes and heal (reference, section 5.3)."""

import pytest

from epicast.core.config import DAY_US
from epicast.core.ids import NOBODY
from epicast.dissemination.flood import Flood
from epicast.membership.hyparview import HyParViewConfig
from epicast.membership.hyparview_messages import Neighbour, ShuffleReply
from epicast.sim.faults import Partition
from epicast.sim.world import World
from tests.support.overlays import MS, SECOND, Overlay, is_connected, one_sided, random_edges
from tests.support.worlds import degrees, grown, joining, views

TARGET, LIMIT = 4, 8


def settled(world: World, limit_us: int = 60 * SECOND) -> bool:
    """Does a moment come at which all links are two-sided and everyone is connected?"""
    start_us = world.now_us
    return world.run_while(
        lambda: bool(one_sided(views(world))) or not is_connected(views(world)), 100 * MS, start_us + limit_us
    )


@pytest.fixture(scope="module")
def quiet() -> World:
    """Nothing fails and nothing is refreshed: after a minute the overlay has come to rest."""
    return grown("flood", 192, settle_us=60 * SECOND, membership={"refresh": 0.0, "island_periods": 0})


# Symmetry


def test_links_are_symmetric_at_rest(quiet: World) -> None:
    """H-I1."""
    assert one_sided(views(quiet)) == []


def test_an_overlay_at_rest_stays_as_it_is(quiet: World) -> None:
    """Section 5.1: the active view is reactive, it changes for failures and joins."""
    before = views(quiet)
    quiet.run_until(quiet.now_us + 30 * SECOND)
    assert views(quiet) == before


def test_a_one_sided_link_is_two_sided_or_gone_after_two_keep_alives() -> None:
    """H-I1: forgotten by one side without a word."""
    world = grown("flood", 24, settle_us=30 * SECOND, membership={"refresh": 0.0, "shed": 0.0})
    forgetful = world.nodes[5].membership
    for peer in list(forgetful.peers()):
        forgetful.active.discard(peer)  # type: ignore[attr-defined]
        del forgetful.pulses[peer]  # type: ignore[attr-defined]
    assert one_sided(views(world)) != []
    world.run_until(world.now_us + 3 * SECOND)
    assert one_sided(views(world)) == []
    assert len(views(world)[5]) >= TARGET


def test_no_one_sided_link_lasts_while_processes_come_and_go() -> None:
    """H-I1: what is under way is one-sided for a moment; nothing stays so for three seconds."""
    world = grown("flood", 64, settle_us=10 * SECOND)
    for number in range(20):
        world.call_at(world.now_us + number * 500 * MS, world.crash, 3 * number + 1)
        world.call_at(world.now_us + number * 500 * MS, world.join)
    seen: list[set[tuple[int, int]]] = []
    for _ in range(40):
        world.run_until(world.now_us + 500 * MS)
        seen.append(set(one_sided(views(world))))
        assert not set.intersection(*seen[-7:]) or len(seen) < 7


# Sizes


def test_no_active_view_ever_exceeds_target_times_expansion() -> None:
    """H-I2: looked at 50 times a second while everyone joins through the same few processes."""
    world = joining("flood", 128)
    for _ in range(50 * 10):
        world.run_until(world.now_us + 20 * MS)
        assert max(degrees(views(world)), default=0) <= LIMIT


def test_links_lost_above_target_are_not_replaced() -> None:
    """H-I3: everyone has six links where four are wanted, and knows whom to ask; as long as four remain nobody does."""
    held = HyParViewConfig(active_size=4, refresh=0.0, shed=0.0, shuffle_interval_us=DAY_US)
    overlay = Overlay(random_edges(16, 6), Flood, held=held)
    for node in overlay.nodes.values():
        node.membership.on_shuffle_reply(NOBODY, ShuffleReply(tuple(range(16))))  # type: ignore[attr-defined]
    remaining = dict.fromkeys(overlay.nodes, 6)
    for a, b in overlay.edges:
        if min(remaining[a], remaining[b]) > 4:
            overlay.nodes[a].membership.on_link_down(b)
            remaining[a] -= 1
            remaining[b] -= 1
    overlay.run(30 * SECOND)
    assert overlay.sends(Neighbour) == []
    assert {node: len(peers) for node, peers in overlay.views().items()} == remaining
    assert min(remaining.values()) == 4
    scarce = next(node for node, degree in remaining.items() if degree == 4)
    overlay.nodes[scarce].membership.on_link_down(overlay.views()[scarce][0])
    assert [sent.src for sent in overlay.sends(Neighbour)] == [scarce]


def test_the_mean_degree_is_near_the_target_and_few_are_above_it() -> None:
    """H-I4, BR-3 (iii): at most one in ten above the target, none above twice the target."""
    found = degrees(views(grown("flood", 256, settle_us=90 * SECOND)))
    assert TARGET <= sum(found) / len(found) <= 1.05 * TARGET
    assert sum(degree > TARGET for degree in found) <= 0.1 * len(found)
    assert max(found) <= LIMIT
    assert min(found) >= TARGET - 1


def test_start_up_sets_off_no_chain_of_evictions() -> None:
    """Section 5.1, the reason for the expansion factor: with it a join moves fewer others."""
    roomy = grown("flood", 128, settle_us=0, membership={"refresh": 0.0})
    tight = grown("flood", 128, settle_us=0, membership={"refresh": 0.0, "expansion": 1.0})
    assert _evictions(roomy) < _evictions(tight) / 2


def _evictions(world: World) -> int:
    return {kind.__name__: messages for kind, (messages, _) in world.engine.sent.items()}.get("Disconnect", 0)


# Connectivity


def test_the_overlay_is_connected_after_joins() -> None:
    """H-I5."""
    assert is_connected(views(grown("flood", 256, settle_us=10 * SECOND)))


@pytest.mark.parametrize("percent", [3, 5])
def test_the_overlay_is_connected_after_churn(percent: int) -> None:
    """H-I5: five minutes of the documents' churn, in which so many in a hundred leave and join each minute."""
    world = grown("flood", 128, settle_us=10 * SECOND)
    each_us = 60 * SECOND * 100 // (128 * percent)
    for number in range(5 * 60 * SECOND // each_us):
        world.call_at(world.now_us + number * each_us, lambda: world.crash(world.up[world.now_us % len(world.up)]))
        world.call_at(world.now_us + number * each_us, world.join)
    world.run_until(world.now_us + 5 * 60 * SECOND)
    assert settled(world, 10 * SECOND)
    assert len(world.up) >= 127


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_overlay_survives_the_failure_of_many_at_once(share: float) -> None:
    """H-I5, section 5.1: connected again although up to 80 % failed at one instant."""
    world = grown("flood", 200, settle_us=30 * SECOND)
    for node in world.chance.sample(list(world.up), int(200 * share)):
        world.crash(node)
    assert settled(world, 60 * SECOND)
    world.run_until(world.now_us + 30 * SECOND)
    assert is_connected(views(world))
    assert min(degrees(views(world))) >= 1


def test_the_halves_of_a_healed_partition_find_each_other() -> None:
    """H-I5: although each half has taken the other for dead and has closed its ranks."""
    world = grown("flood", 64, settle_us=20 * SECOND)
    rule = Partition(frozenset(range(32)))
    world.network.add_rule(rule)
    world.run_until(world.now_us + 30 * SECOND)
    assert not is_connected(views(world))
    world.network.remove_rule(rule)
    assert settled(world, 60 * SECOND)


# Detection and measurement


def test_a_failed_neighbour_is_gone_from_every_view_within_the_silence_limit() -> None:
    """Section 5.1: keep-alives on every link, and a broken connection is noticed at once."""
    world = grown("flood", 48, settle_us=20 * SECOND)
    world.crash(7)
    world.run_until(world.now_us + 5 * SECOND)
    assert all(7 not in peers for peers in views(world).values())


def test_round_trips_are_measured_on_every_link(quiet: World) -> None:
    """Section 5.1: with delays of 10 to 100 ms a way they lie between 20 and 200 ms."""
    for node, part in quiet.nodes.items():
        for peer in part.membership.peers():
            rtt_us = part.membership.rtt_us(peer)
            assert rtt_us is not None
            assert 20 * MS <= rtt_us <= 200 * MS, (node, peer)


def test_passive_views_are_full_and_hold_no_neighbour(quiet: World) -> None:
    """Section 5.1: shuffles keep them so."""
    for node, part in quiet.nodes.items():
        passive = list(part.membership.passive)  # type: ignore[attr-defined]
        assert len(passive) >= 25
        assert not set(passive) & {node, NOBODY, *part.membership.peers()}
