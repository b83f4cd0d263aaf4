"""`epicast compare` compares two stacks on the same workload, and explains what is seen from the numbers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epicast.cli.comparison import Outcome, explanation
from epicast.dissemination.brisa_messages import Data, Deactivate
from epicast.dissemination.flood import Gossip
from epicast.sim.api import simulate
from tests.unit.cli.shell import Shell

SMALL = ("compare", "--nodes", 40, "--messages", 25)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    runs = [simulate(stack, nodes=20, messages=5, warmup="2s") for stack in ("flood", "brisa")]
    return [Outcome(run, {Gossip: [100, 9_000], Deactivate: [50, 1_000]}) for run in runs]


def test_both_stacks_meet_the_same_workload(shell: Shell) -> None:
    found = shell(*SMALL, "--json").json
    flood, brisa = found["stacks"]["flood"], found["stacks"]["brisa"]
    assert flood["messages"] == brisa["messages"] == 25
    assert flood["nodes"]["started"] == brisa["nodes"]["started"]
    assert flood["nodes"]["crashed"] == brisa["nodes"]["crashed"]
    assert brisa["copies_per_delivery"] < flood["copies_per_delivery"]
    assert brisa["bytes_per_node"] < flood["bytes_per_node"]
    assert 0 < flood["control_share"] < brisa["control_share"] < 1
    assert found["scenario"]["churn"] == "const churn 3% each 10s"
    assert found["explanation"].endswith(".")


def test_the_table_has_a_column_for_each(shell: Shell) -> None:
    answer = shell(*SMALL, "--seed", 3)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert "40 nodes · 25 messages" in lines[0]
    for label in ("delivery ratio", "copies per delivery", "latency, median", "tree depth", "repairs, soft and hard"):
        assert any(line.strip().startswith(label) for line in lines)


def test_the_seed_decides(shell: Shell) -> None:
    digests = [
        [each["trace_digest"] for each in shell(*SMALL, "--seed", seed, "--json").json["stacks"].values()]
        for seed in (1, 1, 2)
    ]
    assert digests[0] == digests[1] != digests[2]


def test_bytes_without_payload_are_control(outcomes: list[Outcome]) -> None:
    flood = outcomes[0]
    assert flood.bytes_per_node == 10_000 / 20
    assert flood.control_bytes_per_node == 1_000 / 20
    assert flood.control_share == 0.1
    assert Outcome(flood.summary, {Data: [0, 0]}).control_share is None


def changed(outcome: Outcome, **fields: Any) -> Outcome:
    return replace(outcome, summary=replace(outcome.summary, **fields))


def test_the_explanation_follows_the_numbers(outcomes: list[Outcome]) -> None:
    flood, brisa = outcomes
    latency = {**brisa.summary.latency_ms, "p50": (flood.summary.latency_ms["p50"] or 0) * 2}
    repairs = {"soft": 3, "hard": 1, "parents_lost": 4}
    text = explanation(flood, changed(brisa, latency_ms=latency, repairs=repairs, copies_per_delivery=1.25))
    assert "both stacks delivered everything" in text
    assert "brisa 1.25," in text
    assert "median latency 100 % higher" in text
    assert "of the 4 times that a process lost its parent in the tree, 3 were mended among its neighbours" in text


def test_the_explanation_does_not_hide_what_was_lost(outcomes: list[Outcome]) -> None:
    flood, brisa = outcomes
    text = explanation(changed(flood, missing=1, delivery_ratio=0.999991), brisa)
    assert text.startswith("flood delivered 99.999 %, brisa 100 %;")
    assert "no process lost its parent" in explanation(flood, changed(brisa, repairs={"parents_lost": 0}))
