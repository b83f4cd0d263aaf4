"""The numbers of a summary, against what the full trace and plain counting say."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from epicast.core.ids import NOBODY
from epicast.core.records import Kind, Level
from epicast.sim.collector import Collector
from epicast.sim.population import Population
from epicast.sim.scenario import Scenario
from epicast.sim.summary import Summary
from epicast.sim.world import World
from epicast.trace.batch import DTYPES, Batch, Names

RUNS: dict[str, dict[str, Any]] = {
    "quiet": {"stack": "static-flood"},
    "churn": {"stack": "flood", "churn": "const churn 20% each 1s; at 500ms leave 5"},
    "copies": {"stack": "static-flood", "network": {"transport": "datagram", "duplication": 0.3, "loss": 0.1}},
    "tree": {"stack": "brisa", "churn": "const churn 10% each 1s"},
    "two sources": {"stack": "brisa", "workload": {"messages": 20, "rate": 10, "sources": 2}},
    "partition": {"stack": "flood", "fault": [{"kind": "partition", "at": 0, "until": "1s", "fraction": 0.3}]},
    "frozen": {"stack": "brisa", "fault": [{"kind": "pause", "at": "500ms", "count": 5}], "drain": "2s"},
}


def batch(*rows: tuple[int, Kind, int, int, int, int], hops: int = 1) -> Batch:
    """Rows of time, kind, node, peer, source and sequence number."""
    columns: dict[str, Any] = {name: np.zeros(len(rows), dtype) for name, dtype in DTYPES.items()}
    for name, column in zip(("time_us", "kind", "node", "peer", "source", "seq"), zip(*rows, strict=True), strict=True):
        columns[name] = np.array(column, DTYPES[name])
    columns["hops"] = np.full(len(rows), hops, np.int32)
    return Batch(**columns)


class FullTrace:
    """The same questions, answered slowly from all rows."""

    def __init__(self, world: World, batches: list[Batch]) -> None:
        self.names = world.names
        columns = {name: np.concatenate([getattr(b, name) for b in batches]).tolist() for name in DTYPES}
        self.rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        self.published = {(r["source"], r["seq"]): r["time_us"] for r in self.of(Kind.PUBLISH)}
        self.joined = {r["node"]: r["time_us"] for r in self.of(Kind.JOIN)}
        self.ended = {r["node"] for r in self.of(Kind.LEAVE, Kind.CRASH)}

    def of(self, *kinds: Kind) -> list[dict[str, int]]:
        return [row for row in self.rows if row["kind"] in kinds]

    def payload_receptions(self) -> int:
        return sum(row["seq"] >= 0 for row in self.of(Kind.RECEIVE, Kind.DUPLICATE))

    def pairs(self) -> tuple[int, int]:
        delivered = {(row["node"], row["source"], row["seq"]) for row in self.of(Kind.DELIVER)}
        staying = [node for node in self.joined if node not in self.ended]
        owed = {(n, *m) for m, at in self.published.items() for n in staying if self.joined[n] <= at}
        return len(owed), len(owed - delivered)

    def latencies(self) -> list[int]:
        rows = [row for row in self.of(Kind.DELIVER) if row["node"] != row["source"]]
        return sorted(
            row["time_us"] - at
            for row in rows
            if self.joined[row["node"]] <= (at := self.published[row["source"], row["seq"]])
        )


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> tuple[Summary, FullTrace]:
    quick = {"nodes": 50, "warmup": "5s", "workload": {"messages": 20, "rate": 10}, "drain": "8s"}
    world = World(Scenario.load({**quick, **RUNS[request.param]}), 3, level=Level.FULL)
    batches: list[Batch] = []
    world.sinks.append(batches.append)
    return world.run(), FullTrace(world, batches)


def test_owed_and_missing_pairs(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    owed, missing = trace.pairs()
    assert (summary.owed, summary.missing) == (owed, missing)
    assert summary.delivery_ratio == round((owed - missing) / owed, 6)
    assert summary.repeated == 0


def test_copies_are_the_receptions_of_payloads(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    others = summary.deliveries - summary.messages
    duplicates = len(trace.of(Kind.DUPLICATE))
    assert summary.copies_per_delivery == round(trace.payload_receptions() / others, 6)
    assert summary.duplicates_per_delivery == round(duplicates / others, 6)


def test_latency_and_hops(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    latencies = trace.latencies()
    assert summary.latency_ms == {
        "mean": round(sum(latencies) / len(latencies) / 1000, 6),
        **{f"p{p}": latencies[-(-p * len(latencies) // 100) - 1] / 1000 for p in (50, 90, 99)},
        "max": latencies[-1] / 1000,
    }
    assert 1 <= summary.hops["mean"] <= summary.hops["max"]  # type: ignore[operator]


def test_messages_and_bytes_by_layer_and_type(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    layers: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    types: Counter[str] = Counter()
    for row in trace.of(Kind.SEND):
        layers[trace.names[row["layer"]]][0] += 1
        layers[trace.names[row["layer"]]][1] += row["bytes"]
        types[trace.names[row["detail"]]] += 1
    assert summary.messages_by_layer == {layer: count for layer, (count, _) in sorted(layers.items())}
    assert summary.bytes_by_layer == {layer: size for layer, (_, size) in sorted(layers.items())}
    assert summary.messages_by_type == dict(types)


def test_drops_by_reason_and_what_is_in_flight(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    drops = Counter(trace.names[row["detail"]] for row in trace.of(Kind.DROP))
    assert summary.drops == dict(sorted(drops.items()))
    sent, arrived = len(trace.of(Kind.SEND, Kind.COPY)), len(trace.of(Kind.RECEIVE, Kind.DUPLICATE))
    assert summary.in_flight == sent - arrived - sum(drops.values())


def test_repairs_and_lost_parents(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    repairs = Counter(trace.names[row["detail"]] for row in trace.of(Kind.REPAIR))
    lost = sum(row["peer"] == NOBODY for row in trace.of(Kind.PARENT))
    assert summary.repairs == {"soft": repairs["soft"], "hard": repairs["hard"], "parents_lost": lost}
    assert summary.gaps == len(trace.of(Kind.GAP))


def test_the_lives_of_processes(run: tuple[Summary, FullTrace]) -> None:
    summary, trace = run
    assert summary.nodes == {
        "started": len(trace.joined),
        "up_at_end": len(trace.joined) - len(trace.ended),
        "crashed": len(trace.of(Kind.CRASH)),
        "left": len(trace.of(Kind.LEAVE)),
    }


def test_a_summary_is_json_as_it_stands(run: tuple[Summary, FullTrace]) -> None:
    summary, _ = run
    text = json.dumps(summary.as_dict(), allow_nan=False)
    assert json.loads(text) == summary.as_dict()
    assert list(summary.as_dict())[:3] == ["complete", "interrupted", "stack"]


def test_a_run_of_nothing_has_nulls_for_what_it_cannot_tell() -> None:
    world = World(Scenario.load({"stack": "static-flood", "nodes": 3, "workload": {"messages": 0}}), 1)
    found = world.run().as_dict()
    json.dumps(found, allow_nan=False)
    assert found["complete"] is True
    assert (found["owed"], found["missing"], found["delivery_ratio"]) == (0, 0, None)
    assert found["copies_per_delivery"] is None
    assert set(found["latency_ms"].values()) == set(found["hops"].values()) == {None}


# The collector by itself


def joined(*times_us: int) -> Population:
    population = Population()
    for node, time_us in enumerate(times_us):
        population.joins(node, time_us)
    return population


def test_only_those_present_throughout_are_owed() -> None:
    population = joined(0, 0, 0, 50)
    collector = Collector(Names(), population)
    collector.take(
        batch((10, Kind.PUBLISH, 0, 0, 0, 0), (10, Kind.DELIVER, 0, 0, 0, 0), (20, Kind.DELIVER, 1, 0, 0, 0))
    )
    assert collector.owed_and_missing() == (3, 1)
    assert collector.holes(10) == [(0, 0, 2)]
    assert not collector.all_delivered()
    population.ends(2, 60, "crash")
    assert collector.owed_and_missing() == (2, 0)
    assert collector.all_delivered()


def test_a_message_published_later_is_owed_to_the_newcomer_too() -> None:
    collector = Collector(Names(), joined(0, 50))
    collector.take(batch((10, Kind.PUBLISH, 0, 0, 0, 0), (10, Kind.DELIVER, 0, 0, 0, 0)))
    assert collector.all_delivered()
    collector.take(batch((50, Kind.PUBLISH, 0, 0, 0, 1), (50, Kind.DELIVER, 0, 0, 0, 1)))
    assert collector.holes(10) == [(0, 1, 1)]
    collector.take(batch((70, Kind.DELIVER, 1, 0, 0, 1)))
    assert collector.all_delivered()
    assert collector.latency_us.maximum() == 20


def test_what_a_newcomer_catches_up_on_is_no_latency() -> None:
    collector = Collector(Names(), joined(0, 50))
    collector.take(batch((10, Kind.PUBLISH, 0, 0, 0, 0), (9_999, Kind.DELIVER, 1, 0, 0, 0)))
    assert collector.latency_us.maximum() is None


def test_deliveries_that_should_not_be_are_counted() -> None:
    collector = Collector(Names(), joined(0, 0))
    again = (20, Kind.DELIVER, 1, 0, 0, 0)
    collector.take(batch((10, Kind.PUBLISH, 0, 0, 0, 0), again, again, (30, Kind.DELIVER, 1, 0, 7, 7)))
    assert (collector.repeated(), collector.strays) == (1, 1)


def test_where_batches_end_leaves_no_mark() -> None:
    rows = [(10, Kind.PUBLISH, 0, 0, 0, 0), (10, Kind.DELIVER, 0, 0, 0, 0), (15, Kind.DELIVER, 1, 0, 0, 0)]
    rows += [(20, Kind.PUBLISH, 1, 0, 1, 0), (20, Kind.DELIVER, 1, 0, 1, 0), (29, Kind.DELIVER, 2, 0, 1, 0)]
    one, many = Collector(Names(), joined(0, 0, 0)), Collector(Names(), joined(0, 0, 0))
    one.take(batch(*rows))
    for row in rows:
        many.take(batch(row))
    for collector in (one, many):
        assert collector.owed_and_missing() == (6, 2)
        assert collector.latency_us.mean() == 7
        assert (collector.deliveries, collector.own_deliveries) == (4, 2)
