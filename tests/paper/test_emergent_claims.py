"""Emergent over areas (reference, sections 6, 8 and 9; figures 5.10 to 5.12 of document 001, at a third of their size).

Everyone knows 7 processes of its area and 2 outside, like CLON, or 2 and 7, like Scamp. In document 001 every link
takes one step. In reality an area is much quicker than the way to others.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from epicast.core.records import Level
from epicast.dissemination.emergent import Emergent
from epicast.sim.world import World
from tests.support.overlays import MS, SECOND
from tests.support.places import AREAS, Traffic, areas_world, graph, publish

NODES, MESSAGES = 300, 10
STEP_MS = 10
STEPS, QUICK_AREAS = "constant 10ms", "areas 5 1ms 50ms"
CLON_LIKE, SCAMP_LIKE = (7, 2), (2, 7)


class Run:
    """What came of it, for each message."""

    def __init__(self, degrees: tuple[int, int], latency: str, settings: dict[str, Any], **network: Any) -> None:
        settings = {"pull": "none", **settings}
        self.world = areas_world(graph(NODES, *degrees), settings, latency=latency, **network)
        self.traffic = Traffic(self.world)
        publish(self.world, MESSAGES)
        self.whole = self.world.all_delivered()
        self.mean_ms = self.world.summary().latency_ms["mean"] or 0.0

    def far_payloads(self) -> float:
        return self.traffic.payloads(far=True) / MESSAGES

    def each(self, name: str, *, far: bool) -> float:
        """For each process as well."""
        return self.traffic.of(name, far=far) / MESSAGES / NODES


@cache
def run(degrees: tuple[int, int] = CLON_LIKE, latency: str = STEPS, **settings: Any) -> Run:
    return Run(degrees, latency, settings)


# Payloads and advertisements


@pytest.mark.parametrize("scheduler", ["single", "delayed"])
@pytest.mark.parametrize("latency", [STEPS, QUICK_AREAS])
def test_all_lazy_everyone_gets_each_payload_exactly_once(scheduler: str, latency: str) -> None:
    """Section 6."""
    lazy = run(latency=latency, scheduler=scheduler, eager="none")
    assert lazy.whole
    assert lazy.traffic.payloads(far=False) + lazy.traffic.payloads(far=True) == MESSAGES * (NODES - 1)


def test_all_eager_nothing_is_advertised_or_asked_for() -> None:
    """Section 6."""
    eager = run(eager="all")
    assert eager.whole
    assert {name for name, _ in eager.traffic.received} == {"Msg"}


@pytest.mark.parametrize("degrees", [CLON_LIKE, SCAMP_LIKE])
def test_flooding_brings_a_payload_over_every_arc(degrees: tuple[int, int]) -> None:
    """Figure 5.10 and section 9: as many as a process has arcs to it, but for those back to the sender."""
    eager = run(degrees, eager="all")
    assert eager.each("Msg", far=False) == pytest.approx(degrees[0], rel=0.03)
    assert eager.each("Msg", far=True) == pytest.approx(degrees[1], rel=0.03)


@pytest.mark.parametrize("scheduler", ["naive", "single", "delayed"])
def test_with_no_eager_rounds_every_payload_from_another_area_was_asked_for(scheduler: str) -> None:
    """Section 8: copies received are eager arcs and answered requests. Advertisements are as many as far neighbours."""
    lazy = run(scheduler=scheduler)
    assert lazy.whole
    assert lazy.traffic.of("Msg", far=True) == lazy.traffic.of("IWant", far=True)
    assert lazy.each("IHave", far=True) == pytest.approx(2, rel=0.02)
    assert lazy.each("Msg", far=False) == pytest.approx(7, rel=0.03)


@pytest.mark.parametrize(("degrees", "low", "high"), [(CLON_LIKE, 0.45, 0.75), (SCAMP_LIKE, 1.8, 2.6)])
def test_naively_as_many_payloads_come_from_other_areas_as_published(
    degrees: tuple[int, int], low: float, high: float
) -> None:
    """Figure 5.11, E-CLON-13: about 600 of 1,000 messages with CLON, slightly above 2,000 with Scamp."""
    naive, single = run(degrees, scheduler="naive"), run(degrees, scheduler="single")
    assert low <= naive.each("Msg", far=True) <= high
    assert single.each("Msg", far=True) < naive.each("Msg", far=True)
    assert single.each("Msg", far=True) < 1


def test_flooding_scamp_costs_eight_times_what_emergent_over_clon_does() -> None:
    """Figure 5.11: from 7,000 to 600."""
    assert run(SCAMP_LIKE, eager="all").far_payloads() >= 8 * run(CLON_LIKE, scheduler="naive").far_payloads()


# Eager rounds


def test_more_eager_rounds_cost_more_and_take_less_time() -> None:
    """Figure 5.12, E-CLON-28 and E-CLON-29: each round counts, the first as well."""
    runs = [run(scheduler="naive", eager_remote_rounds=rounds) for rounds in (0, 1, 2, 3, 4, 7)]
    flood = run(eager="all")
    payloads = [each.far_payloads() for each in runs]
    assert payloads == sorted(payloads)
    assert payloads[1] < 0.5 * payloads[-1]
    assert payloads[-1] == pytest.approx(flood.far_payloads(), rel=0.01)
    times = [each.mean_ms for each in runs]
    assert all(later <= earlier + STEP_MS / 10 for earlier, later in pairwise(times))
    assert times[0] >= 1.5 * times[-1]
    assert times[1] < times[0] - STEP_MS, "one eager round is quicker than none"
    assert times[4] == pytest.approx(flood.mean_ms, abs=STEP_MS / 10)


# Who gets what


def delivered(world: World) -> list[tuple[int, int, int]]:
    world.engine.flush()
    return world.collector.holes(10**6)


@pytest.mark.parametrize("source", [0, 7])
def test_who_gets_a_message_does_not_depend_on_who_is_eager(source: int) -> None:
    """Sections 6 and 14.3: over an overlay that does not reach everyone, it is always the same processes."""
    rng = Random(3)
    views = [[peer for peer in view if rng.random() < 0.5] for view in graph(100, 2, 1)]
    reached, todo = {source}, [source]
    while todo:
        news = [peer for peer in views[todo.pop()] if peer not in reached]
        reached.update(news)
        todo += news
    assert 30 < len(reached) < 95
    for settings in (
        {"eager": "all"},
        {"eager": "none", "scheduler": "single"},
        {"eager": "none", "scheduler": "naive"},
        {"scheduler": "naive"},
        {"scheduler": "single"},
        {"scheduler": "delayed"},
        {"scheduler": "delayed", "eager_remote_rounds": 2},
    ):
        world = areas_world(views, {"pull": "none", **settings}, latency=QUICK_AREAS, level=Level.DELIVERIES)
        world.publish(source, "t", b"x")
        world.run_until(60 * SECOND)
        missing = {node for *_, node in delivered(world)}
        assert set(range(100)) - missing == reached, settings


@pytest.mark.parametrize("settings", [{"eager": "all"}, {"eager": "none"}, {"eager_remote_rounds": 1}])
def test_on_every_link_just_one_of_the_rounds_grows(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 8: counted from the rounds at the sender, which starts anew after a long link."""
    came: list[tuple[int, int, Any]] = []
    handle = Emergent.on_msg

    def watched(self: Emergent, sender: Any, msg: Any) -> bool:
        came.append((self.env.me, sender, msg))  # type: ignore[arg-type]
        return handle(self, sender, msg)

    monkeypatch.setattr(Emergent, "on_msg", watched)
    world = areas_world(graph(100, *CLON_LIKE), {"pull": "none", **settings}, engine="pure")
    publish(world, 5)
    assert world.all_delivered()
    firsts = 0
    for me, sender, msg in came:
        far = me % AREAS != sender % AREAS
        kept: Any = world.nodes[sender].dissemination.recent.get((msg.source, msg.seq))  # type: ignore[attr-defined]
        assert (msg.local_round - kept.local_round, msg.remote_round - kept.remote_round) == (not far, far)
        assert (msg.distance > 0) == far
        if not far and kept.distance:
            firsts += 1
            assert msg.local_round == 1, "the first within the area"
    assert firsts


# Once over the long links


AT_MOST = 2 * (AREAS - 1)


@pytest.mark.parametrize(
    "network",
    [{}, {"loss": 0.01}, {"transport": "datagram", "loss": 0.01}],
    ids=["no loss", "loss on links", "lost datagrams"],
)
def test_each_area_fetches_a_payload_about_once(network: dict[str, Any]) -> None:
    """Section 13: the lower bound is one for each other area. Published is more than half of the processes."""
    patient = Run(CLON_LIKE, QUICK_AREAS, {}, **network)
    assert patient.whole
    assert AREAS - 1 <= patient.far_payloads() <= AT_MOST
    assert patient.far_payloads() < run(latency=QUICK_AREAS, scheduler="single").far_payloads() / 10


def test_that_costs_little_time() -> None:
    patient, single = run(latency=QUICK_AREAS), run(latency=QUICK_AREAS, scheduler="single")
    assert patient.mean_ms < single.mean_ms + 50


def test_the_same_while_processes_crash() -> None:
    views = graph(NODES, *CLON_LIKE)
    world = areas_world(views, {}, latency=QUICK_AREAS, loss=0.01)
    traffic = Traffic(world)
    for number in range(60):
        world.call_at(world.now_us + number * 150 * MS, world.crash, 50 + number * 3)
    publish(world, 20, rest_us=20 * SECOND)
    assert len(world.nodes) == NODES - 60
    assert world.all_delivered()
    assert traffic.payloads(far=True) / 20 <= AT_MOST
