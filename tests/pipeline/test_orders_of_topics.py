"""Total order on several topics at once: each in an order of its own, or all in one.

A process that heard of an event on one topic and publishes on another has caused the second by the first. Topics with
orders of their own do not wait for each other, so that the second may be delivered first, and stacks promise no more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from epicast.core.records import Level
from epicast.live.orders import with_order
from epicast.pipeline.guarantees import Verdict
from epicast.stacks import stack as stacks
from tests.pipeline.measured import judged, simulated


def four_topics(folder: Path, scope: str) -> dict[str, Verdict]:
    return judged(
        simulated(
            folder,
            Level.DELIVERIES,
            stack="epto",
            overrides={"ordering": {"scope": scope}},
            nodes=30,
            latency="quantiles planetlab-epto",
            network={"transport": "datagram"},
            warmup="8s",
            workload={
                "pattern": "poisson",
                "messages": 400,
                "rate": 60,
                "sources": 30,
                "source_order": "random",
                "topics": ["a", "b", "c", "d"],
            },
        )
    )


def test_orders_of_topics_keep_total_order_and_fifo_but_not_what_caused_what(tmp_path: Path) -> None:
    found = four_topics(tmp_path, "topic")
    assert not any(verdict.broken for verdict in found.values())
    assert (found["total"].violations, found["fifo"].violations) == (0, 0)
    assert found["total"].promised
    assert found["causal"].violations > 0
    assert not found["causal"].promised


def test_one_order_for_all_topics_keeps_what_caused_what(tmp_path: Path) -> None:
    found = four_topics(tmp_path, "all")
    assert {name: found[name].violations for name in ("total", "fifo", "causal")} == {
        "total": 0,
        "fifo": 0,
        "causal": 0,
    }


@pytest.mark.parametrize("name", ["epto", "epto-brisa"])
def test_stacks_with_an_order_for_each_topic_promise_no_causal_order(name: str) -> None:
    assert "total" in stacks.load(name).promises
    assert "causal" not in stacks.load(name).promises


def test_live_nodes_promise_what_their_order_keeps_over_all_topics() -> None:
    stack = stacks.load("brisa")
    added = {
        order: set(with_order(stack, order, None).promises) - set(stack.promises)
        for order in ("fifo", "causal", "total")
    }
    assert added == {"fifo": {"fifo"}, "causal": {"fifo", "causal"}, "total": {"fifo", "total"}}
