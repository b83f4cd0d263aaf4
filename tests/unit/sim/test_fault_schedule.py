"""Faults at their time, to the right victims."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from epicast.sim.fault_schedule import FaultConfig, FaultSchedule
from tests.unit.sim.rig import Rig

MS = 1_000


class People:
    """Processes that write down what is done to them."""

    def __init__(self, rig: Rig, protected: frozenset[int]) -> None:
        self.rig, self.protected = rig, protected
        self.up = list(range(len(rig.listeners)))
        self.done: list[tuple[int, str, int]] = []

    def crash(self, node: int) -> None:
        self.done.append((self.rig.engine.now, "crash", node))

    def pause(self, node: int) -> None:
        self.done.append((self.rig.engine.now, "pause", node))

    def resume(self, node: int) -> None:
        self.done.append((self.rig.engine.now, "resume", node))


def schedule(rig: Rig, *, protected: frozenset[int] = frozenset(), **fault: Any) -> People:
    """The fault, on a clock that starts at 100 ms."""
    people = People(rig, protected)
    FaultSchedule(people, rig.network, Random(1), rig.engine.call_at, 100 * MS).add(FaultConfig.load(fault))
    return people


def sent_over_time(rig: Rig, src: int, dst: int) -> list[int]:
    """A message each 100 ms from 50 ms on; the numbers of those that arrive."""
    for number in range(5):
        rig.engine.call_at((50 + 100 * number) * MS, rig.send, src, dst, number)
    rig.run(700 * MS)
    return sorted(rig.numbers())


@pytest.mark.parametrize(
    ("kind", "src", "dst", "arrived"),
    [
        ("partition", 0, 2, [0, 1, 4]),
        ("partition", 2, 0, [0, 1, 4]),
        ("partition", 0, 1, [0, 1, 2, 3, 4]),
        ("one-way", 0, 2, [0, 1, 4]),
        ("one-way", 2, 0, [0, 1, 2, 3, 4]),
        ("isolate", 0, 1, [0, 1, 4]),
        ("isolate", 2, 3, [0, 1, 2, 3, 4]),
    ],
)
def test_a_fault_lasts_from_its_time_to_its_end(kind: str, src: int, dst: int, arrived: list[int]) -> None:
    rig = Rig(4, transport="datagram")
    schedule(rig, kind=kind, at="100ms", until="300ms", nodes=[0, 1])
    assert sent_over_time(rig, src, dst) == arrived


def test_without_an_end_a_fault_lasts_to_the_end_of_the_run() -> None:
    rig = Rig(4, transport="datagram")
    schedule(rig, kind="partition", at="100ms", nodes=[0, 1])
    assert sent_over_time(rig, 0, 2) == [0, 1]


def test_loss_comes_and_goes_back_to_what_it_was() -> None:
    rig = Rig(transport="datagram", loss=0.25)
    schedule(rig, kind="loss", at="100ms", until="300ms", probability=1.0)
    rig.run(250 * MS)
    assert rig.network.config.loss == 1.0
    rig.run(500 * MS)
    assert rig.network.config.loss == 0.25


def test_a_clog_delays() -> None:
    rig = Rig(transport="datagram")
    schedule(rig, kind="clog", at=0, count=1, delay="30ms")
    rig.run(200 * MS)
    rig.send(0, 1, 1)
    rig.run()
    assert rig.times() == [240 * MS]


def test_paused_processes_are_resumed() -> None:
    rig = Rig(4)
    people = schedule(rig, kind="pause", at="100ms", until="300ms", nodes=[1, 3])
    rig.run()
    assert people.done == [
        (200 * MS, "pause", 1),
        (200 * MS, "pause", 3),
        (400 * MS, "resume", 1),
        (400 * MS, "resume", 3),
    ]


def test_a_share_of_all_is_drawn_among_the_unprotected() -> None:
    rig = Rig(20)
    people = schedule(rig, kind="crash", at=0, fraction=0.5, protected=frozenset(range(8)))
    rig.run()
    victims = [node for _, _, node in people.done]
    assert len(set(victims)) == len(victims) == 10
    assert min(victims) >= 8


def test_there_may_be_fewer_victims_than_wanted() -> None:
    rig = Rig(5)
    people = schedule(rig, kind="crash", at=0, count=9, protected=frozenset([0]))
    rig.run()
    assert [node for _, _, node in people.done] == [1, 2, 3, 4]


def test_named_victims_that_are_gone_are_left_out() -> None:
    rig = Rig(5)
    people = schedule(rig, kind="crash", at=0, nodes=[2, 9], protected=frozenset([2]))
    rig.run()
    assert [node for _, _, node in people.done] == [2]


def test_a_reset_strikes_all_links_of_its_victims() -> None:
    rig = Rig(3).linked(0, 1).linked(1, 2)
    schedule(rig, kind="reset", at=0, nodes=[0])
    rig.run()
    assert [(node, peer, up) for _, node, peer, up in rig.notices] == [(0, 1, False), (1, 0, False)]


def test_half_open_the_victims_forget_and_their_peers_go_on_believing() -> None:
    rig = Rig(3).linked(0, 1).linked(1, 2)
    schedule(rig, kind="half-open", at=0, nodes=[1])
    rig.run()
    assert [(node, peer, up) for _, node, peer, up in rig.notices] == [(1, 0, False), (1, 2, False)]
