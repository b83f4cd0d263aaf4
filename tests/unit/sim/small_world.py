"""A world with nothing in it but processes that come and go, for trying churn scripts."""

from __future__ import annotations

from collections.abc import Container
from random import Random
from typing import NamedTuple

from epicast.sim.churn import ChurnDriver, parse_churn

SECOND = 1_000_000


class Happening(NamedTuple):
    time_us: int
    kind: str
    node: int  # the process that came or went


def run_churn(
    script: str,
    nodes: int = 0,
    seed: int = 1,
    protected: Container[int] = (),
    start_s: float = 0,
    end_s: float = 10_000,
) -> list[Happening]:
    """All that the script does to a world of `nodes` processes, checked against what every world relies on."""
    start_us, end_us = round(start_s * SECOND), round(end_s * SECOND)
    driver = ChurnDriver(parse_churn(script), Random(seed), start_us, end_us, protected)
    alive, born, now_us = list(range(nodes)), nodes, 0
    happenings: list[Happening] = []
    for node in alive:
        driver.joined(node, 0)
    while (due_us := driver.next_us()) is not None:
        assert due_us >= now_us, "time went back"
        now_us = due_us
        for action in driver.pop(alive):
            if action.kind == "join":
                alive.append(born)
                driver.joined(born, now_us, action.node)
                happenings.append(Happening(now_us, "join", born))
                born += 1
            else:
                assert action.node is not None
                assert action.node not in protected, "a protected process went"
                alive.remove(action.node)  # raises if it was not there
                happenings.append(Happening(now_us, action.kind, action.node))
    return happenings


def count(happenings: list[Happening], kind: str) -> int:
    return sum(happening.kind == kind for happening in happenings)


def population(happenings: list[Happening], nodes: int = 0) -> int:
    joins = count(happenings, "join")
    return nodes + 2 * joins - len(happenings)
