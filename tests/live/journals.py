"""Journals for the tests: small ones made by hand, and those that the processes of a simulated run would have written
had they been live."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epicast.core.ids import NOBODY, NodeId
from epicast.core.records import Kind, Level
from epicast.trace.journal import Journal
from epicast.trace.merge import find_journals, merge
from epicast.trace.read import read_events, read_nodes, read_snapshots
from epicast.trace.run import RunFolder

START_US = 1_800_000_000_000_000  # a day in 2027
KINDS = {kind.name.lower(): kind for kind in Kind}
LIFE = ("join", "leave", "crash")  # rows that merging puts in


def start(folder: Path, node_id: str = "127.0.0.1:7001/a", **changes: Any) -> Journal:
    given: dict[str, Any] = {
        "node_id": node_id,
        "level": Level.FULL,
        "stack_name": "brisa",
        "promises": ["integrity", "agreement"],
        "cluster": "epicast",
        "started_us": START_US,
    }
    return Journal.create(folder, **given | changes)


def id_of(node: int) -> NodeId:
    return node if node == NOBODY else f"127.0.0.1:{7000 + node}/k{node:07}"


A, B, C = (str(id_of(node)) for node in (1, 2, 3))
S = 1_000_000


def merged(folder: Path, **given: Any) -> RunFolder:
    return merge(find_journals(folder), folder / "merged", command=["epicast", "check"], **given)


def split(run: RunFolder, into: Path) -> dict[str, int]:
    """One journal for each process of a simulated run, in its own words. Those that were up to the end are stopped one
    after the other two seconds later. Returns when processes crashed: their journals do not tell."""
    nodes = {row["node"]: row for row in read_nodes(run.path).to_pylist()}
    journals = {
        node: start(
            into / str(node),
            str(id_of(node)),
            level=run.info.trace_level,
            promises=run.info.promises,
            area=row["area"],
            started_us=START_US + row["joined_us"],
        )
        for node, row in nodes.items()
    }
    events = read_events(run.path).to_pylist()
    for row in events:
        if row["kind"] not in LIFE:
            write(journals[row["node"]], row)
    _take_pictures(run, nodes, journals)
    last_us = START_US + max(row["time_us"] for row in events) + 2_000_000
    for node, journal in journals.items():
        ended_us, how = nodes[node]["ended_us"], nodes[node]["how"]
        if how == "crash":
            journal.close()
        else:
            journal.end("leave", last_us + 10_000 * node if ended_us is None else START_US + ended_us, {"sent": 1})
    crashed = {node: row for node, row in nodes.items() if row["how"] == "crash"}
    return {str(id_of(node)): START_US + row["ended_us"] for node, row in crashed.items()}


def write(journal: Journal, row: Mapping[str, Any]) -> None:
    journal.write(
        START_US + row["time_us"],
        KINDS[row["kind"]],
        id_of(row["peer"]),
        id_of(row["source"]),
        row["seq"],
        row["hops"],
        row["bytes"],
        row["layer"],
        row["detail"],
        row["topic"],
        row["flags"],
    )


def _take_pictures(run: RunFolder, nodes: Mapping[int, Any], journals: Mapping[int, Journal]) -> None:
    """Of every overlay that the run has a picture of at that time, each process tells its own edges."""
    edges: dict[tuple[int, str, str], dict[int, list[tuple[NodeId, int]]]] = {}
    for row in read_snapshots(run.path).to_pylist():
        picture = edges.setdefault((row["time_us"], row["overlay"], row["flow"]), {})
        picture.setdefault(row["node"], []).append((id_of(row["peer"]), row["value"]))
    for (time_us, overlay, flow), known in edges.items():
        source, _, number = flow.partition("/")
        for node, row in nodes.items():
            if row["joined_us"] <= time_us and (row["ended_us"] is None or row["ended_us"] > time_us):
                name = (id_of(int(source)), int(number)) if flow else flow
                journals[node].snapshot(START_US + time_us, overlay, name, known.get(node, ()))


class Cluster:
    """A few processes that write journals by hand."""

    def __init__(self, folder: Path, *ids: str, **given: Any) -> None:
        self.folder = folder
        self.journals = {who: start(folder / who.replace("/", "_"), who, **given) for who in ids}
        for journal in self.journals.values():
            journal.write(START_US, Kind.JOIN)

    def __getitem__(self, who: str) -> Journal:
        return self.journals[who]

    def publish(self, who: str, at_us: int, seq: int = 0) -> None:
        self[who].write(START_US + at_us, Kind.PUBLISH, who, who, seq, topic="t")
        self[who].write(START_US + at_us, Kind.DELIVER, who, who, seq, topic="t")

    def deliver(self, who: str, at_us: int, source: str, seq: int = 0) -> None:
        self[who].write(START_US + at_us, Kind.DELIVER, source, source, seq, 1, topic="t")

    def end(self, *at_us: int) -> Cluster:
        for journal, end_us in zip(self.journals.values(), at_us, strict=True):
            journal.end("leave", START_US + end_us)
        return self
