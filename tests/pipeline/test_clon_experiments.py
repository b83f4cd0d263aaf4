"""The experiments about CLON: their set-ups are as published, and their claims can fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple
from typing import Any

import pytest

from epicast.experiments import catalog, clon_bootstrap, clon_healing, clon_overlay, clon_traffic, clon_ttl
from epicast.experiments.claims import judged
from epicast.experiments.clon_words import scaled
from epicast.pipeline.confidence import stat
from epicast.pipeline.metrics import drops
from epicast.pipeline.report.data import CheckRow
from tests.pipeline.made_results import MadeResults

OVERLAYS = ("scamp", "clon", "balanced")
PUBLISHED = ("clon-overlay", "clon-traffic", "clon-ttl")


CLAIMS = {
    "clon-overlay": clon_overlay.CLAIMS,
    "clon-traffic": clon_traffic.CLAIMS,
    "clon-ttl": clon_ttl.CLAIMS,
    "clon-healing": clon_healing.CLAIMS,
}


def checked(name: str, made: MadeResults) -> dict[str, CheckRow]:
    """Without the figures, which take longer."""
    return {row.id: row for row in judged(CLAIMS[name], made.results())}


def verdicts(name: str, made: MadeResults) -> dict[str, str]:
    return {check: row.verdict for check, row in checked(name, made).items()}


# Set-ups


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_set_up_is_played(name: str) -> None:
    """S1: five areas of 200 processes, steps of one length, nine links, joins through one contact that is drawn."""
    for point in catalog.load(name).points():
        scenario = point.scenario
        place_of = scenario.build_latency().place_of
        assert Counter(place_of(node) for node in range(scenario.nodes)) == dict.fromkeys("01234", 200)
        assert scenario.latency == "areas 5 1ms 1ms"
        assert scenario.joins.contacts == 1
        membership: Any = scenario.build_stack().membership.config
        assert (membership.target_degree, membership.lease_us, membership.heartbeat_us) == (9, 0, 0)
        if membership.__class__.__name__ == "ClonConfig":
            assert membership.wanted == (7, 2)
            assert (membership.balance_interval_us > 0) == (point.labels.get("overlay") == "balanced")
        if point.labels.get("overlay") == "balanced":
            assert scenario.warmup_us == 100 * membership.balance_interval_us


def test_the_rounds_of_pushing_are_those_of_the_axis() -> None:
    *points, flooding = catalog.load("clon-ttl").points()
    configs: list[Any] = [point.scenario.build_stack().dissemination.config for point in points]
    assert [str(config.eager_remote_rounds) for config in configs] == [point.labels["ttl"] for point in points]
    assert {config.scheduler for config in configs} == {"naive"}
    assert flooding.scenario.build_stack().dissemination.protocol == "flood"


def test_trouble_means_churn_loss_and_three_grades_of_distance() -> None:
    for point in catalog.load("clon-healing").points():
        scenario = point.scenario
        assert scenario.network.loss == 0.01
        assert (scenario.network.transport == "datagram") == (point.labels["network"] == "datagrams")
        assert {scenario.build_latency().place_of(node) for node in range(8)} == {f"{n % 2}/{n}" for n in range(8)}
        assert scenario.churn


# clon-overlay


def overlays() -> MadeResults:
    made = MadeResults(overlay=OVERLAYS)
    for strategy in drops.STRATEGIES:
        for percent in strategy.percents:
            for what in drops.CONNECTIVITY:
                left = 1.0 if strategy.areas else {80: 0.4, 90: 0.1}.get(percent, 0.99)
                made.give(drops.name_of(strategy, percent, what), left, left)
    for percent in drops.UNIFORM.percents:
        for overlay, clustering, path in (("scamp", 0.06, 3.6), ("clon", 0.12, 3.7), ("balanced", 0.07, 3.5)):
            made.give(drops.name_of(drops.UNIFORM, percent, "clustering"), clustering, overlay=overlay)
            made.give(drops.name_of(drops.UNIFORM, percent, "path_mean"), path + percent / 50, overlay=overlay)
    made.give("overlay_degree_mean", 8.9, 9.1).give("far_degree_mean", 2.0, 2.1).give("overlay_degree_min", 1, 1)
    for overlay, most, about in (("scamp", 27, 0.3), ("clon", 27, 0.3), ("balanced", 15, 0.5)):
        made.give("overlay_degree_max", most, overlay=overlay).give("overlay_about_mean_share", about, overlay=overlay)
        made.spread("degree", {1: 10 if overlay == "clon" else 1, 9: 100}, overlay=overlay)
    return made


def test_clon_overlay_holds_for_what_was_published() -> None:
    assert set(verdicts("clon-overlay", overlays()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "overlay"),
    [
        ("half", "drop_uniform_50_weak_share", 0.97, "clon"),
        ("half", "drop_uniform_30_weak_share", 0.97, "scamp"),
        ("sixty", "drop_uniform_60_weak_share", 0.89, "clon"),
        ("alike", "drop_uniform_40_weak_share", 0.93, "clon"),
        ("rupture", "drop_uniform_80_strong_share", 0.6, "scamp"),
        ("areas", "drop_two_areas_100_weak_share", 0.98, "clon"),
        ("areas", "drop_one_area_25_weak_share", 0.98, "scamp"),
        ("clustered", "drop_uniform_60_clustering", 0.08, "clon"),
        ("steady", "drop_uniform_40_clustering", 0.16, "clon"),
        ("longer", "drop_uniform_20_path_mean", 3.9, "clon"),
        ("growing", "drop_uniform_30_path_mean", 5.0, "scamp"),
        ("spread", "overlay_degree_max", 24, "clon"),
        ("spread", "overlay_degree_min", 3, "clon"),
        ("spread", "overlay_degree_mean", 9.9, "clon"),
        ("evened", "overlay_about_mean_share", 0.3, "balanced"),
        ("extremes", "overlay_degree_max", 27, "balanced"),
        ("mean-kept", "overlay_degree_mean", 8.7, "balanced"),
        ("far-kept", "far_degree_mean", 1.1, "balanced"),
        ("balanced-sixty", "drop_uniform_60_weak_share", 0.96, "balanced"),
        ("no-worse", "drop_uniform_70_weak_share", 0.97, "balanced"),
        ("less-clustered", "drop_uniform_0_clustering", 0.11, "balanced"),
        ("less-clustered", "drop_uniform_0_clustering", 0.03, "balanced"),
        ("shorter", "drop_uniform_0_path_mean", 3.8, "balanced"),
    ],
)
def test_clon_overlay_notices_a_worse_overlay(check: str, metric: str, value: float, overlay: str) -> None:
    found = verdicts("clon-overlay", overlays().give(metric, value, overlay=overlay))
    assert found[f"clon-overlay.{check}"] == "differs"


def test_clon_overlay_notices_processes_that_stay_without_links() -> None:
    made = overlays().spread("degree", {1: 20, 9: 100}, overlay="balanced")
    assert verdicts("clon-overlay", made)["clon-overlay.extremes"] == "differs"


# clon-traffic

LINKS = {"scamp": (1.7, 7.3), "clon": (7.0, 2.0), "balanced": (7.0, 2.0)}
FAR = {
    "scamp": {"flood": 7.3, "naive": 2.2, "single": 0.8, "delayed": 0.3},
    "clon": {"flood": 2.0, "naive": 0.6, "single": 0.4, "delayed": 0.05},
    "balanced": {"flood": 2.0, "naive": 0.6, "single": 0.4, "delayed": 0.05},
}


def traffic() -> MadeResults:
    """Of 200 messages, so everything is scaled by five."""
    made = MadeResults(overlay=OVERLAYS, spread=list(FAR["scamp"]))
    made.give("messages", 200).give("missing", 0, 0).give("owed", 200_000)
    for overlay, (near, far) in LINKS.items():
        made.give("overlay_degree_mean", near + far, overlay=overlay)
        made.give("near_degree_mean", near, overlay=overlay).give("far_degree_mean", far, overlay=overlay)
        made.give("near_copies_mean", 200 * near, overlay=overlay)
        made.give("far_advertisements_mean", 200 * far, overlay=overlay)
        for spread, copies in FAR[overlay].items():
            made.give("far_copies_mean", 200 * copies, overlay=overlay, spread=spread)
    return made


def test_clon_traffic_holds_for_what_was_published() -> None:
    found = checked("clon-traffic", traffic())
    assert {row.verdict for row in found.values()} == {"holds"}
    assert found["clon-traffic.naive-clon"].measured == "600"


@pytest.mark.parametrize(
    ("check", "metric", "value", "overlay", "spread"),
    [
        ("total", "near_copies_mean", 200 * 7.2, "clon", "flood"),
        ("far", "far_copies_mean", 200 * 2.1, "clon", "flood"),
        ("threefold", "far_copies_mean", 200 * 2.5, "clon", "flood"),
        ("naive-scamp", "far_copies_mean", 200 * 2.7, "scamp", "naive"),
        ("naive-clon", "far_copies_mean", 200 * 0.4, "clon", "naive"),
        ("scheduler", "far_copies_mean", 200 * 0.65, "clon", "single"),
        ("scheduler", "far_copies_mean", 200 * 0.5, "balanced", "delayed"),
        ("advertisements", "far_advertisements_mean", 200 * 2.1, "clon", "single"),
        ("near", "near_copies_mean", 200 * 6.8, "balanced", "naive"),
        ("near-more", "near_copies_mean", 200 * 5, "clon", "naive"),
        ("advertised", "far_advertisements_mean", 200 * 3, "clon", "naive"),
        ("magnitude", "far_copies_mean", 200 * 1.0, "clon", "naive"),
        ("balanced", "far_copies_mean", 200 * 0.7, "balanced", "naive"),
        ("complete", "missing", 1, "balanced", "delayed"),
    ],
)
def test_clon_traffic_notices_what_crosses_more(
    check: str, metric: str, value: float, overlay: str, spread: str
) -> None:
    found = verdicts("clon-traffic", traffic().give(metric, value, overlay=overlay, spread=spread))
    assert found[f"clon-traffic.{check}"] == "differs"


# clon-ttl


def pushed() -> MadeResults:
    payloads = [0.56, 0.64, 1.08, 1.62, 1.93, 1.99, 2.0, 2.0, 2.0, 2.0]
    steps = [10.4, 8.4, 7.3, 6.6, 6.2, 6.0, 6.0, 6.0, 6.0, 6.0]
    made = MadeResults(ttl=[*range(10), "flooding"])
    made.give("messages", 100).give("far_copies_mean", 200, ttl="flooding")
    made.give("last_receiver_ms_mean", 6.0, ttl="flooding")
    for ttl in range(10):
        made.give("far_copies_mean", 100 * payloads[ttl], ttl=ttl).give("last_receiver_ms_mean", steps[ttl], ttl=ttl)
    made.give("far_signals", 2500, ttl=0).give("far_advertisements", 2000, ttl=0)
    return made.give("far_copies_per_message", 5, ttl=0)


def test_clon_ttl_holds_for_what_was_published() -> None:
    assert set(verdicts("clon-ttl", pushed()).values()) == {"holds"}


def test_clon_ttl_does_not_stumble_over_roundings() -> None:
    """The mean of a third, times three, may be more than one."""
    asked = (16_577, 16_578, 16_580)
    made = pushed().give("messages", 25).give("far_advertisements", 0, ttl=0).give("far_signals", *asked, ttl=0)
    made.give("far_copies_per_message", *(each / 25 * (1 + 1e-14) for each in asked), ttl=0)
    assert verdicts("clon-ttl", made)["clon-ttl.asked"] == "holds"


@pytest.mark.parametrize(
    ("check", "metric", "value", "ttl"),
    [
        ("more", "far_copies_mean", 150, 5),
        ("faster", "last_receiver_ms_mean", 8.6, 3),
        ("lazy-cost", "far_copies_mean", 80, 0),
        ("lazy-steps", "last_receiver_ms_mean", 14, 0),
        ("lazy-steps", "last_receiver_ms_mean", 7.0, 9),
        ("minimum", "last_receiver_ms_mean", 6.4, 6),
        ("level", "far_copies_mean", 195, 8),
        ("asked", "far_copies_per_message", 6, 0),
        ("asked", "far_copies_per_message", 4, 0),
    ],
)
def test_clon_ttl_notices_what_does_not_pay_off(check: str, metric: str, value: float, ttl: int) -> None:
    assert verdicts("clon-ttl", pushed().give(metric, value, ttl=ttl))[f"clon-ttl.{check}"] == "differs"


# clon-healing


def troubled() -> MadeResults:
    made = MadeResults(overlay=OVERLAYS, spread=["flood", "emergent"], network=["connections", "datagrams"])
    made.give("overlay_largest_weak_share", 1.0, 0.995).give("delivery_ratio", 1.0, 1.0)
    made.over_time("overlay_degree_mean", {-10: 4.0, 0: 9.0, 180: 8.5, 190: 2.0})
    for overlay, links in (("scamp", (1, 3, 5)), ("clon", (6, 2, 1)), ("balanced", (6, 2, 1))):
        for distance, count in enumerate(links):
            made.give(f"overlay_degree_mean_at_{distance}", count, overlay=overlay)
    made.over_time("overlay_near_degree_mean", {0: 6.0, 180: 6.0})
    made.over_time("overlay_far_degree_mean", {0: 3.0, 180: 3.0})
    made.give("far_copies_per_message", 3000, spread="flood").give("far_copies_per_message", 30, spread="emergent")
    return made


def test_clon_healing_holds_where_everything_is_mended() -> None:
    assert set(verdicts("clon-healing", troubled()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("whole-connections", "overlay_largest_weak_share", 0.98, {"overlay": "clon", "network": "connections"}),
        ("whole-datagrams", "overlay_largest_weak_share", 0.98, {"overlay": "scamp", "network": "datagrams"}),
        ("grades", "overlay_degree_mean_at_2", 2.0, {"overlay": "balanced"}),
        ("emergent-connections", "delivery_ratio", 0.9999, {"spread": "emergent", "network": "connections"}),
        ("flood-connections", "delivery_ratio", 0.998, {"spread": "flood", "network": "connections"}),
        ("emergent-datagrams", "delivery_ratio", 0.98, {"spread": "emergent", "network": "datagrams"}),
        ("flood-datagrams", "delivery_ratio", 0.98, {"spread": "flood", "network": "datagrams"}),
        ("saving", "far_copies_per_message", 400, {"spread": "emergent", "network": "datagrams"}),
    ],
)
def test_clon_healing_notices_what_is_not_mended(check: str, metric: str, value: float, labels: dict[str, str]) -> None:
    assert verdicts("clon-healing", troubled().give(metric, value, **labels))[f"clon-healing.{check}"] == "differs"


@pytest.mark.parametrize("network", ["connections", "datagrams"])
def test_clon_healing_notices_views_that_shrink(network: str) -> None:
    made = troubled().over_time("overlay_degree_mean", {0: 9.0, 180: 7.0}, overlay="clon", network=network)
    assert verdicts("clon-healing", made)[f"clon-healing.views-{network}"] == "differs"


def test_clon_healing_notices_a_bias_that_fades() -> None:
    made = troubled().over_time("overlay_far_degree_mean", {0: 3.0, 180: 4.5}, overlay="balanced")
    assert verdicts("clon-healing", made)["clon-healing.bias"] == "differs"


# Arithmetic


def test_numbers_are_scaled_with_their_intervals() -> None:
    made = MadeResults(ttl=[0]).give("messages", 200).give("far_copies_mean", 100, 110, 120, ttl=0)
    assert astuple(scaled(made.results(), "far_copies_mean", ttl=0)) == pytest.approx(astuple(stat([500, 550, 600])))


# Newcomers


def test_how_many_contacts_are_taken_is_an_exact_expectation() -> None:
    """Reference: 19.4 of 200, 12.5 of 86, 8.1 of 38, 3.9 of 10."""
    taken = [clon_bootstrap.taken_of(contacts) for contacts in (200, 86, 38, 10)]
    assert taken == pytest.approx([19.4, 12.5, 8.1, 3.9], abs=0.06)
