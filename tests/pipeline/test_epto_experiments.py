"""The experiments about EpTO: their set-ups are as published, and their claims can fail."""

from __future__ import annotations

from typing import Any

import pytest

from epicast.core.balls_and_bins import fanout, rounds
from epicast.experiments import catalog, ep_2_3, ep_4, ep_5, ep_6, ep_c, ep_loss, ep_size, ep_views, epto_bytes
from epicast.experiments.claims import Claim, judged
from tests.pipeline.made_results import MadeResults

CLOCKS = ("global", "logical")
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "ep-2-3": ep_2_3.CLAIMS,
    "ep-4": ep_4.CLAIMS,
    "ep-5": ep_5.CLAIMS,
    "ep-6": ep_6.CLAIMS,
    "ep-c": ep_c.CLAIMS,
    "ep-loss": ep_loss.CLAIMS,
    "ep-size": ep_size.CLAIMS,
    "ep-views": ep_views.CLAIMS,
    "epto-bytes": epto_bytes.CLAIMS,
}


def verdicts(name: str, made: MadeResults) -> dict[str, str]:
    """Without the figures, which take longer."""
    return {row.id: row.verdict for row in judged(CLAIMS[name], made.results())}


def sound(**axes: Any) -> MadeResults:
    """Everything delivered, in one order."""
    made = MadeResults(**axes).give("order_kept_min", 1, 1).give("hole_free_share", 1, 1)
    for none in ("holes", "holes_staying", "late", "missing"):
        made.give(none, 0, 0)
    made.give("owed", 30_000).give("deliveries", 30_000).give("messages", 300).give("delivery_ratio", 1, 1)
    return made.give("processes_staying", 100)


# Set-ups


@pytest.mark.parametrize("name", ["ep-2-3", "ep-4", "ep-5", "ep-loss"])
def test_the_published_set_up_is_played(name: str) -> None:
    """Everybody knows everybody, datagrams with PlanetLab's delays, rounds of their median with drift 0.1."""
    for point in catalog.load(name).points():
        scenario = point.scenario
        assert scenario.latency == "quantiles planetlab-epto"
        assert (scenario.joins.degree, scenario.network.transport) == (scenario.nodes - 1, "datagram")
        assert (scenario.workload.pattern, scenario.workload.source_order) == ("poisson", "random")
        assert scenario.workload.sources == scenario.nodes
        stack = scenario.build_stack()
        balls: Any = stack.dissemination.config
        assert stack.membership.protocol == "static"
        assert balls.clock == point.labels["clock"]
        if "balls" not in point.labels:
            assert (balls.fanout, balls.rounds) == (fanout(scenario.nodes), rounds(scenario.nodes))
        if "period" not in point.labels:
            assert balls.period_us == 125_000
        if "drift" not in point.labels:
            assert balls.drift == 0.1


@pytest.mark.parametrize(("name", "rounds"), [("ep-2-3", 20), ("ep-4", 30), ("ep-5", 30)])
def test_processes_publish_as_often_as_published_for_so_many_rounds(name: str, rounds: int) -> None:
    for point in catalog.load(name).points():
        scenario = point.scenario
        balls: Any = scenario.build_stack().dissemination.config
        share = ep_2_3.System.of(point.labels["system"]).rate if "system" in point.labels else 0.5
        in_a_round = scenario.workload.rate * balls.period_us / 1e6
        assert in_a_round == pytest.approx(share * scenario.nodes, rel=1e-4)
        assert scenario.workload.messages == pytest.approx(rounds * in_a_round, rel=1e-4)


def test_half_of_the_system_is_immune_and_publishes() -> None:
    for point in catalog.load("ep-6").points():
        scenario = point.scenario
        assert (scenario.workload.sources, scenario.nodes, scenario.protect_sources) == (50, 100, True)
        churn = point.labels["churn"]
        assert scenario.churn == (f"from 125ms to 4s const churn {churn}% each 125ms" if churn != "0" else "")


# ep-2-3

SYSTEMS = [f"{n} at {r}" for n in (100, 200, 500) for r in (0.01, 0.1, 0.5)]
KEPT = dict(zip(SYSTEMS, (0.8, 0.45, 0.2, 0.7, 0.35, 0.15, 0.6, 0.25, 0.1), strict=True))
SLOWER = dict(zip(SYSTEMS, (1.0, 1.0, 1.1, 1.1, 1.1, 1.2, 1.3, 1.3, 1.4), strict=True))


def spontaneous() -> MadeResults:
    made = sound(order=["unordered", "epto"], clock=CLOCKS, system=SYSTEMS)
    for system, kept in KEPT.items():
        for clock in CLOCKS:
            less = 0 if clock == "global" else 0.005
            made.give("order_kept_mean", kept - less, kept - less, order="unordered", clock=clock, system=system)
            made.give("order_kept_max", 1.05 * kept, order="unordered", clock=clock, system=system)
        for order, clock, ms in (
            ("unordered", "global", 220),
            ("unordered", "logical", 220),
            ("epto", "global", 620),
            ("epto", "logical", 1500),
        ):
            made.give("delay_ms_p50", ms * SLOWER[system], order=order, clock=clock, system=system)
            made.give("delay_last_ms_p50", (ms + 120) * SLOWER[system], order=order, clock=clock, system=system)
    return made


def test_ep_2_3_holds_for_what_was_published() -> None:
    assert set(verdicts("ep-2-3", spontaneous()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("ep-2.half", "order_kept_max", 0.5, {"order": "unordered", "clock": "logical", "system": "500 at 0.5"}),
        ("ep-2.rate", "order_kept_mean", 0.5, {"order": "unordered", "clock": "global", "system": "100 at 0.5"}),
        ("ep-2.size", "order_kept_mean", 0.4, {"order": "unordered", "clock": "global", "system": "500 at 0.1"}),
        ("ep-2.which", "order_kept_mean", 0.6, {"order": "unordered", "clock": "global", "system": "100 at 0.5"}),
        ("ep-2.clock", "order_kept_mean", 0.9, {"order": "unordered", "clock": "logical", "system": "100 at 0.01"}),
        ("ep-2.epto", "holes_staying", 1, {"order": "epto", "clock": "logical", "system": "200 at 0.1"}),
        ("ep-2.epto", "order_kept_min", 0.99, {"order": "epto", "clock": "global", "system": "200 at 0.1"}),
        ("ep-3.ranks", "delay_ms_p50", 600, {"order": "epto", "clock": "logical", "system": "100 at 0.1"}),
        ("ep-3.global", "delay_ms_p50", 1000, {"order": "epto", "clock": "global", "system": "100 at 0.01"}),
        ("ep-3.logical", "delay_ms_p50", 3000, {"order": "epto", "clock": "logical", "system": "200 at 0.5"}),
        ("ep-3.size", "delay_ms_p50", 1300, {"order": "epto", "clock": "global", "system": "500 at 0.01"}),
        ("ep-3.rate", "delay_ms_p50", 500, {"order": "unordered", "clock": "global", "system": "200 at 0.5"}),
    ],
)
def test_ep_2_3_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, str]) -> None:
    assert verdicts("ep-2-3", spontaneous().give(metric, value, **labels))[check] == "differs"


# ep-4 and ep-5

FREE = {5: 0.0, 10: 0.01, 15: 0.2, 25: 0.7, 42: 0.95, 63: 1.0, 125: 1.0}


def rushed() -> MadeResults:
    made = sound(clock=CLOCKS, period=FREE)
    for period, free in FREE.items():
        made.give("hole_free_share", free, free, clock="global", period=period)
    return made


def test_ep_4_holds_for_what_was_published() -> None:
    assert set(verdicts("ep-4", rushed()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("order", "order_kept_min", 0.99, {"clock": "global", "period": 5}),
        ("half", "holes_staying", 1, {"clock": "logical", "period": 63}),
        ("third", "hole_free_share", 0.8, {"clock": "global", "period": 42}),
        ("worse", "hole_free_share", 0.8, {"clock": "global", "period": 15}),
        ("worse", "hole_free_share", 0.6, {"clock": "global", "period": 5}),
        ("logical", "hole_free_share", 0.6, {"clock": "logical", "period": 25}),
    ],
)
def test_ep_4_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("ep-4", rushed().give(metric, value, **labels))[f"ep-4.{check}"] == "differs"


def drifting() -> MadeResults:
    return sound(clock=CLOCKS, drift=[0.1, 0.5, 1.0, 1.5, 5.0]).give("hole_free_share", 0.8, clock="global", drift=5.0)


def test_ep_5_holds_for_what_was_published() -> None:
    assert set(verdicts("ep-5", drifting()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("order", "order_kept_min", 0.99, {"clock": "logical", "drift": 5.0}),
        ("small", "holes_staying", 2, {"clock": "global", "drift": 0.5}),
        ("one", "hole_free_share", 0.98, {"clock": "global", "drift": 1.0}),
        ("beyond", "hole_free_share", 1.0, {"clock": "global", "drift": 5.0}),
        ("logical", "hole_free_share", 0.9, {"clock": "logical", "drift": 5.0}),
    ],
)
def test_ep_5_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("ep-5", drifting().give(metric, value, **labels))[f"ep-5.{check}"] == "differs"


# ep-6 and ep-loss


def churning() -> MadeResults:
    made = sound(clock=CLOCKS, churn=[0, 5, 10, 20, 30], fanout=[17, 34])
    return made.give("delay_ms_p50", 611).give("delay_ms_p50", 624, churn=10)


def test_ep_6_holds_for_what_was_published() -> None:
    assert set(verdicts("ep-6", churning()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("delay", "delay_ms_p50", 700, {"clock": "logical", "churn": 10, "fanout": 17}),
        ("complete", "holes_staying", 1, {"clock": "global", "churn": 20, "fanout": 17}),
        ("reach", "delay_ms_p50", 700, {"clock": "logical", "churn": 10, "fanout": 34}),
        ("reach", "holes_staying", 1, {"clock": "global", "churn": 20, "fanout": 34}),
        ("order", "order_kept_min", 0.99, {"clock": "global", "churn": 30}),
    ],
)
def test_ep_6_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("ep-6", churning().give(metric, value, **labels))[f"ep-6.{check}"] == "differs"


def test_ep_6_lets_pass_holes_under_more_churn_than_was_claimed() -> None:
    assert verdicts("ep-6", churning().give("holes_staying", 7, churn=30))["ep-6.complete"] == "holds"


def lossy() -> MadeResults:
    made = sound(clock=CLOCKS, balls=ep_loss.BALLS, loss=[0.0, 0.2, 0.4, 0.6])
    for loss in ("0.0", "0.2", "0.4", "0.6"):
        share = 1.1 * ep_loss.predicted("weak", loss)
        made.give("missing", 29_700 * share, balls="weak", loss=loss)
        made.give("delivery_ratio", 1 - 0.99 * share, balls="weak", loss=loss)
    return made


def test_ep_loss_holds_where_balls_and_bins_are_right() -> None:
    assert set(verdicts("ep-loss", lossy()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("order", "order_kept_min", 0.99, {"clock": "global", "balls": "weak", "loss": 0.6}),
        ("default", "hole_free_share", 0.99, {"clock": "global", "balls": "default", "loss": 0.4}),
        ("longer", "hole_free_share", 0.99, {"clock": "global", "balls": "longer", "loss": 0.2}),
        ("logical", "hole_free_share", 0.99, {"clock": "logical", "balls": "default", "loss": 0.6}),
        ("more", "delivery_ratio", 0.9, {"clock": "logical", "balls": "default", "loss": 0.0}),
        ("predicted", "missing", 10, {"clock": "global", "balls": "weak", "loss": 0.4}),
        ("predicted", "late", 9_000, {"clock": "logical", "balls": "weak", "loss": 0.4}),
    ],
)
def test_ep_loss_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("ep-loss", lossy().give(metric, value, **labels))[f"ep-loss.{check}"] == "differs"


# What nobody published


def thrown() -> MadeResults:
    made = sound(c=[1.0, 1.25, 4.0], throws=ep_c.THROWS, nodes=[10, 100])
    return made.give("holes_staying", 3, c=1.25, throws="document")


def test_ep_c_holds_where_the_defaults_leave_hardly_a_hole() -> None:
    assert set(verdicts("ep-c", thrown()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("order", "order_kept_min", 0.9, {"c": 4.0, "throws": "document", "nodes": 10}),
        ("default", "holes_staying", 7, {"c": 1.25, "throws": "everybody"}),
        ("everybody", "holes_staying", 4, {"c": 1.25, "throws": "everybody"}),
    ],
)
def test_ep_c_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("ep-c", thrown().give(metric, value, **labels))[f"ep-c.{check}"] == "differs"


def viewed() -> MadeResults:
    made = sound(views=ep_views.VIEWS, balls=ep_views.BALLS)
    for views in ep_views.VIEWS:
        few = views in ep_views.FEW
        made.give("delivery_ratio", 0.8 if few else 0.98, views=views, balls="weak")
        made.give("delivery_ratio", 0.95 if few else 1.0, views=views, balls="default")
    return made


def test_ep_views_holds_where_few_neighbours_are_too_few() -> None:
    assert set(verdicts("ep-views", viewed()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("order", "order_kept_min", 0.9, {"views": "scamp", "balls": "weak"}),
        ("uniform", "hole_free_share", 0.98, {"views": "cyclon", "balls": "default"}),
        ("few", "delivery_ratio", 1.0, {"views": "scamp", "balls": "default"}),
        ("weak", "delivery_ratio", 0.97, {"views": "neighbours", "balls": "weak"}),
        ("weak", "delivery_ratio", 0.94, {"views": "cyclon", "balls": "weak"}),
    ],
)
def test_ep_views_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("ep-views", viewed().give(metric, value, **labels))[f"ep-views.{check}"] == "differs"


def weighed() -> MadeResults:
    made = sound(stack=epto_bytes.STACKS, payload=[100, 1000, 10000]).give("window_s", 10).give("processes_staying", 64)
    for stack, copies, fixed in (("epto", 120, 20_000), ("epto-brisa", 1.1, 15_000)):
        for payload in (100, 1000, 10000):
            sent = 30_000 * (fixed + copies * payload)
            made.give("upload_bytes_per_second", sent / 640, stack=stack, payload=payload)
    return made


def test_epto_bytes_holds_where_trees_carry_payloads_once() -> None:
    assert set(verdicts("epto-bytes", weighed()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value", "labels"),
    [
        ("once", "upload_bytes_per_second", 2e6, {"stack": "epto-brisa", "payload": 10000}),
        ("balls", "upload_bytes_per_second", 5e6, {"stack": "epto", "payload": 10000}),
        ("worth", "upload_bytes_per_second", 9e5, {"stack": "epto", "payload": 1000}),
        ("complete", "holes_staying", 1, {"stack": "epto-brisa", "payload": 100}),
    ],
)
def test_epto_bytes_notices_what_differs(check: str, metric: str, value: float, labels: dict[str, Any]) -> None:
    assert verdicts("epto-bytes", weighed().give(metric, value, **labels))[f"epto-bytes.{check}"] == "differs"


def large() -> MadeResults:
    made = sound(nodes=[500, 1000, 10000]).give("hops_mean", 3.0)
    return made.give("delay_ms_p50", 2000).give("delay_ms_p50", 2900, nodes=10000)


def test_ep_size_holds_where_delays_grow_like_logarithms() -> None:
    assert set(verdicts("ep-size", large()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("check", "metric", "value"),
    [
        ("complete", "holes_staying", 1),
        ("complete", "order_kept_min", 0.9),
        ("delay", "delay_ms_p50", 4000),
        ("hops", "hops_mean", 14),
    ],
)
def test_ep_size_notices_what_differs(check: str, metric: str, value: float) -> None:
    assert verdicts("ep-size", large().give(metric, value, nodes=10000))[f"ep-size.{check}"] == "differs"
