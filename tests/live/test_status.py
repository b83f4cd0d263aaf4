"""What a node tells of itself: plain data, complete, and bounded whatever others do."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from epicast.live import metrics, status
from epicast.live.metrics import METRICS, exposition, samples
from epicast.live.node import Node
from epicast.live.running import run
from epicast.live.watch import ALONE_S, EVERY_S, Watch
from tests.tidy.source import ROOT, SRC
from tests.tidy.test_docs import table

NOWHERE = "127.0.0.1:1"


@asynccontextmanager
async def pair(stack: str = "brisa") -> AsyncIterator[tuple[Node, Node]]:
    async with Node(stack=stack) as first, Node(stack=stack, seeds=[first.address]) as second:
        await second.ready()
        yield first, second


async def publish(source: Node, to: Node, count: int) -> None:
    async with to.subscribe("a/*") as messages:
        for number in range(count):
            await source.publish("a/b", b"%d" % number)
        for _ in range(count):
            await anext(messages)


def test_a_node_tells_who_it_is() -> None:
    async def body() -> None:
        async with pair() as (first, second):
            told = status.status(second)
            assert told["id"] == second.id
            assert told["address"] == second.address
            assert (told["cluster"], told["stack"]) == ("epicast", "brisa")
            assert (told["membership"], told["dissemination"]) == ("hyparview", "brisa")
            assert (told["secure"], told["signed"], told["trace"]) == (False, False, None)
            assert told["uptime_s"] >= 0
            assert told["joined"]
            assert [each["id"] for each in told["neighbours"]] == [first.id]
            assert msgspec.json.decode(msgspec.json.encode(told)) == told

    run(body())


def test_a_neighbour_has_its_bytes_and_its_time() -> None:
    async def body() -> None:
        async with pair() as (first, second):
            await publish(first, second, 3)
            neighbour = status.status(first)["neighbours"][0]
            assert neighbour["id"] == second.id
            assert neighbour["up"]
            assert neighbour["sent_bytes"] > 0
            assert neighbour["received_bytes"] > 0
            assert neighbour["queue_bytes"] == 0
            assert neighbour["since_s"] >= 0

    run(body())


def test_a_flow_has_its_place_in_the_tree() -> None:
    async def body() -> None:
        async with pair() as (first, second):
            await publish(first, second, 3)
            (own,), (followed,) = status.status(first)["flows"], status.status(second)["flows"]
            assert own["own"]
            assert (own["source"], own["parent"], own["depth"], own["topics"]) == (first.id, None, 0, [])
            assert own["children"] == [second.id]
            assert not followed["own"]
            assert (followed["source"], followed["parent"], followed["depth"]) == (first.id, first.id, 1)

    run(body())


@pytest.mark.parametrize("stack", ["brisa", "flood"])
def test_published_and_delivered_messages_are_counted(stack: str) -> None:
    async def body() -> None:
        async with pair(stack) as (first, second):
            await publish(first, second, 5)
            counted = [status.status(node)["counters"] for node in (first, second)]
            assert [each["published"] for each in counted] == [5, 0]
            assert [each["delivered"] for each in counted] == [5, 5]

    run(body())


def test_a_stack_without_trees_has_no_flows() -> None:
    async def body() -> None:
        async with pair("flood") as (first, second):
            await publish(first, second, 1)
            assert status.status(second)["flows"] == []

    run(body())


def test_a_subscription_tells_what_waits() -> None:
    async def body() -> None:
        async with pair() as (first, second), second.subscribe("a/*", policy="drop-newest", messages_max=2) as waiting:
            await publish(first, second, 5)
            assert waiting.waiting == 2
            told = status.status(second)
            assert told["subscriptions"] == [
                {"pattern": "a/*", "policy": "drop-newest", "waiting": 2, "taken": 0, "lost": 3}
            ]
            assert told["queues"]["subscribers_messages"] == 2
            assert told["counters"]["lost by subscribers"] == 3

    run(body())


def test_a_node_that_found_nobody_has_not_joined() -> None:
    async def body() -> None:
        async with Node() as first, Node(seeds=[NOWHERE]) as lonely:
            assert status.joined(first)
            assert not status.joined(lonely)

    run(body())


def test_names_that_peers_made_up_fill_neither_the_status_nor_the_metrics() -> None:
    async def body() -> None:
        async with Node() as node:
            for number in range(5000):
                node._hub.counters[f"refused: stack {number}\x1b[2J\n, expected ours"] += 1
                node._hub.counters[f"ended: {'x' * 500}{number}"] += 1  # alike as far as they are told
            node._hub.counters["delivered"] = 7000
            counters = status.status(node)["counters"]
            assert len(counters) == status.COUNTERS_MAX + 1
            assert counters["delivered"] == 7000
            assert sum(counters.values()) == 17_000
            assert all(name.isprintable() for name in counters)
            refused = samples(node)["epicast_greetings_refused_total"]
            assert len(refused) == metrics.REASONS_MAX + 1
            assert sum(count for _, count in refused) == 5000
            assert all(reason.isprintable() for reason, _ in refused)
            assert len(samples(node)["epicast_connections_ended_total"]) == 1

    run(body())


# Metrics


def scraped(node: Node) -> dict[str, dict[tuple[str, ...], float]]:
    """By name; values by the values of the labels."""
    content_type, body = exposition(node)
    assert content_type.startswith("text/plain")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_metrics_are_what_happened() -> None:
    async def body() -> None:
        async with pair() as (first, second):
            await publish(first, second, 4)
            found = scraped(second)
            assert found["epicast_delivered_messages_total"] == {(): 4}
            assert found["epicast_published_messages_total"] == {(): 0}
            assert found["epicast_neighbours"] == found["epicast_joined"] == {(): 1}
            assert found["epicast_flows"] == {(): 1}
            assert found["epicast_flows_without_parent"] == {(): 0}
            assert list(found["epicast_neighbour_received_bytes_total"]) == [(first.id,)]
            assert second.id in next(iter(found["epicast_node_info"]))

    run(body())


def test_every_metric_is_scraped_under_its_name() -> None:
    async def body() -> None:
        async with pair() as (first, second):
            await publish(first, second, 1)
            for metric in METRICS:
                if metric.label == "reason":
                    second._hub.counters[f"{metric.counted_as}a reason: with particulars"] += 1
            found = scraped(second)
            second._stack_node.membership.rtt_us(first.id)
            # Round trips are known after the first keep-alive, and this node writes no trace.
            later = {"epicast_neighbour_round_trip_seconds", "epicast_trace_rows_lost_total"}
            assert {metric.name for metric in METRICS} - set(found) <= later
            assert set(found) - {metric.name for metric in METRICS} <= {n for n in found if n.startswith("process_")}
            assert found["epicast_dropped_messages_total"][("a reason",)] == 1

    run(body())


def test_every_counter_of_the_code_has_a_metric() -> None:
    written = re.compile(r'counters\[f?"([^"{]+)(\{?)')
    names = {match[1] for path in (SRC / "live").glob("*.py") for match in written.finditer(path.read_text())}
    known = {metric.counted_as for metric in METRICS if metric.counted_as}
    discovery = {"announced", "heard", "errors", "ignored: ", "ignored: too many", "ignored: too many addresses"}
    untold = {
        name
        for name in names
        if name not in known and not any(name.startswith(each) for each in known if each[-1] == " ")
    }
    assert untold - discovery <= {"record "}, "give them a metric in live/metrics.py"


def test_every_metric_is_documented() -> None:
    rows = table((ROOT / "docs" / "operations.md").read_text(encoding="utf-8"), "metrics")
    documented = [(name, label, text) for name, label, text in rows]
    assert documented == [(metric.name, metric.label or "", metric.text) for metric in METRICS]


def test_without_the_client_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from epicast.core.errors import EpicastError

    async def body() -> None:
        async with Node() as node:
            monkeypatch.setitem(sys.modules, "prometheus_client", None)
            with pytest.raises(EpicastError, match=r"epicast\[live\]"):
                exposition(node)

    run(body())


# The log


def logged(caplog: pytest.LogCaptureFixture, work: Callable[[], object]) -> list[str]:
    caplog.clear()
    work()
    return [record.getMessage() for record in caplog.records]


def test_the_log_tells_who_comes_and_goes(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with Node() as first:
            watch = Watch(first)
            async with Node(seeds=[first.address]) as second:
                await second.ready()
                while not first.neighbours:
                    await second.ready()
                assert logged(caplog, watch.look) == [f"joined: {second.id}"]
                assert logged(caplog, watch.look) == []
            gone = logged(caplog, watch.look)
            assert gone == [f"no longer neighbours: {second.id}"]

    with caplog.at_level(logging.INFO, logger="epicast"):
        run(body())


def test_the_log_tells_trouble_once(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with Node() as node:
            watch = Watch(node)
            node._hub.counters["nonsense"] += 3
            assert logged(caplog, watch.look) == ["3 connections were cut: what came was no message"]
            assert logged(caplog, watch.look) == []

    with caplog.at_level(logging.INFO, logger="epicast"):
        run(body())


def test_the_log_tells_more_and_more_rarely_that_nobody_is_there(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with Node(seeds=[NOWHERE]) as node:
            watch = Watch(node)
            for _ in range(int(8 * ALONE_S / EVERY_S)):
                watch.look()
            said = [record.getMessage() for record in caplog.records if "no neighbours" in record.getMessage()]
            assert [re.findall(r"\d+ s", text)[0] for text in said] == ["10 s", "20 s", "40 s", "80 s"]

    with caplog.at_level(logging.INFO, logger="epicast"):
        run(body())
