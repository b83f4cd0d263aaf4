"""Makes a sound run folder of any size in little time, without running a protocol.

A random overlay; in it, for each of a few sources, a tree; along the tree a stream of messages, with a second copy now
and then; keep-alives between neighbours, a few of which are lost; here and there a process that changes its parent. All
that a run over HyParView and BRISA promises holds in it. Time passes in windows, so that memory is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epicast.cli.benchmarks.pipeline_flow import Flow, delays, on_ticks, random_links
from epicast.cli.benchmarks.pipeline_rows import Rows
from epicast.core.records import Kind, Level
from epicast.trace.batch import Int64s, Names
from epicast.trace.run import OpenRun, RunFolder
from epicast.trace.tables import Nodes, Snapshot

PROMISES = ("integrity", "validity", "agreement", "no-parasites", "tree", "accounting")
SOURCES = 4
JOIN_EVERY_US = 1_000
SETTLE_US = 12_000_000  # from the last join to the first message, and from the last message to the end
PUBLISH_EVERY_US = 200_000
KEEP_ALIVES = 0.5  # of a process in that time
LOST = 0.005  # share of keep-alives
TWICE = 0.05  # share of payloads of which a second copy comes
RESTLESS = 0.002  # share of processes that choose another parent, in each window
DATA_BYTES, KEEP_ALIVE_BYTES = 1_030, 11
ROWS_PER_COPY = 3 + 2 * TWICE + KEEP_ALIVES * (4 - 2 * LOST)
WINDOW_ROWS = 400_000
NODES_MIN, NODES_MAX, ROWS_PER_NODE = 16, 10_000, 5_000


@dataclass(frozen=True)
class Shape:
    nodes: int
    messages: int

    @classmethod
    def of_rows(cls, rows: int) -> Shape:
        """With about so many rows, rather more than fewer."""
        nodes = min(max(rows // ROWS_PER_NODE, NODES_MIN), NODES_MAX)
        return cls(nodes, max(SOURCES, round(rows / (ROWS_PER_COPY * (nodes - 1)))))


def make_run(path: Path, shape: Shape, seed: int) -> int:
    """Returns how many rows its trace has."""
    scenario = {"stack": "brisa", "nodes": shape.nodes, "messages": shape.messages}
    run = RunFolder.create(
        path,
        scenario=scenario,
        scenario_text="# made by epicast bench pipeline\n",
        seed=seed,
        level=Level.FULL,
        engine="none",
        command=[],
        promises=PROMISES,
    )
    with run:
        _Maker(run, shape, np.random.default_rng(seed)).make()
        run.finish({"in_flight": 0})
    return run.info.rows


class _Maker:
    def __init__(self, run: OpenRun, shape: Shape, rng: np.random.Generator) -> None:
        self.run, self.shape, self.rng = run, shape, rng
        names = Names()
        self.code = names.code
        self.rows = Rows(run.events(names).write)
        self.links = random_links(shape.nodes, rng)
        sources = rng.choice(shape.nodes, SOURCES, replace=False).tolist()
        self.flows = [Flow(source, shape.nodes, self.links, rng) for source in sources]
        self.start_us = shape.nodes * JOIN_EVERY_US + SETTLE_US

    def make(self) -> None:
        self._join()
        step = max(SOURCES, int(WINDOW_ROWS / (ROWS_PER_COPY * self.shape.nodes)))
        for first in range(0, self.shape.messages, step):
            last = min(first + step, self.shape.messages)
            self._keep_alives(self._time_of(first), self._time_of(last))
            for number, flow in enumerate(self.flows):
                self._stream(flow, np.arange(first + (number - first) % SOURCES, last, SOURCES))
            self.rows.write_before(self._time_of(last))
        end_us = self._time_of(self.shape.messages) + SETTLE_US
        self.rows.write_before(end_us)
        self._pictures(end_us)

    def _time_of(self, message: int) -> int:
        return self.start_us + message * PUBLISH_EVERY_US

    def _join(self) -> None:
        nodes = np.arange(self.shape.nodes)
        joined_us, nothing = nodes * JOIN_EVERY_US, [""] * len(nodes)
        names = [str(node) for node in nodes.tolist()]
        self.run.write_nodes(Nodes(nodes, names, nothing, joined_us, np.full_like(nodes, -1), nothing))
        self.rows.add(Kind.JOIN, joined_us, nodes)
        tails, heads = self.links
        self.rows.add(Kind.LINK_UP, np.maximum(joined_us[tails], joined_us[heads]) + JOIN_EVERY_US, tails, peer=heads)

    def _keep_alives(self, from_us: int, to_us: int) -> None:
        """Asked and, unless the question is lost, answered."""
        count = round(self.shape.nodes * KEEP_ALIVES * (to_us - from_us) / PUBLISH_EVERY_US)
        link = self.rng.integers(0, len(self.links[0]), count)
        node, peer = (ends[link] for ends in self.links)
        sent_us = from_us + on_ticks(self.rng.integers(0, to_us - from_us, count))
        came_us = sent_us + delays(count, self.rng)
        lost = self.rng.random(count) < LOST
        about = {"layer": self.code("membership"), "bytes": KEEP_ALIVE_BYTES}
        asks = about | {"detail": self.code("KeepAlive")}
        self.rows.add(Kind.SEND, sent_us, node, peer=peer, **asks)
        self.rows.add(Kind.DROP, came_us[lost], node[lost], peer=peer[lost], **about, detail=self.code("loss"))
        node, peer, came_us = node[~lost], peer[~lost], came_us[~lost]
        self.rows.add(Kind.RECEIVE, came_us, peer, peer=node, **asks)
        answers = about | {"detail": self.code("KeepAliveAck")}
        self.rows.add(Kind.SEND, came_us, peer, peer=node, **answers)
        self.rows.add(Kind.RECEIVE, came_us + delays(len(node), self.rng), node, peer=peer, **answers)

    def _stream(self, flow: Flow, messages: Int64s) -> None:
        """Messages of one source, from their publication to the last copy."""
        if not len(messages):
            return
        published_us, seq = self.start_us + messages * PUBLISH_EVERY_US, messages // SOURCES
        about = {"source": flow.source, "seq": seq, "topic": self.code("stream")}
        self.rows.add(Kind.PUBLISH, published_us, flow.source, peer=flow.source, **about)
        self.rows.add(Kind.DELIVER, published_us, flow.source, peer=flow.source, **about)
        self._new_parents(flow, int(published_us[0]), first=seq[0] == 0)
        had_us = published_us + flow.latencies(len(messages))
        self._copies(flow, had_us, seq)
        self._second_copies(flow, had_us, seq)

    def _new_parents(self, flow: Flow, time_us: int, *, first: bool) -> None:
        who = flow.others if first else flow.change(RESTLESS)
        times = np.full(len(who), time_us)
        about = {"source": flow.source, "seq": 0, "peer": flow.parent[who]}
        self.rows.add(Kind.PARENT, times, who, **about)
        if not first:
            self.rows.add(Kind.REPAIR, times, who, **about, detail=self.code("soft"))

    def _copies(self, flow: Flow, had_us: Int64s, seq: Int64s) -> None:
        """From parent to child, and to its application."""
        node, parent = flow.others, flow.parent[flow.others]
        each = len(node), len(seq)
        about = self._payload(flow, np.broadcast_to(seq, each), np.broadcast_to(flow.depth[node][:, None], each))
        nodes, parents = (np.repeat(ids, len(seq)) for ids in (node, parent))
        self.rows.add(Kind.SEND, had_us[parent].ravel(), parents, peer=nodes, **about, **self._data())
        came_us = had_us[node].ravel()
        self.rows.add(Kind.RECEIVE, came_us, nodes, peer=parents, **about, **self._data())
        self.rows.add(Kind.DELIVER, came_us, nodes, peer=parents, **about, topic=self.code("stream"))

    def _second_copies(self, flow: Flow, had_us: Int64s, seq: Int64s) -> None:
        """From neighbours that have it, after the first copy."""
        count = round(TWICE * len(flow.others) * len(seq))
        link, at = self.rng.integers(0, len(self.links[0]), count), self.rng.integers(0, len(seq), count)
        sender, node = (ends[link] for ends in self.links)
        sent_us = np.maximum(had_us[sender, at], had_us[node, at])
        about = self._payload(flow, seq[at], flow.depth[sender] + 1) | self._data()
        self.rows.add(Kind.SEND, sent_us, sender, peer=node, **about)
        self.rows.add(Kind.DUPLICATE, sent_us + delays(count, self.rng), node, peer=sender, **about)

    def _payload(self, flow: Flow, seq: Int64s, hops: Int64s) -> dict[str, Int64s | int]:
        return {"source": flow.source, "seq": seq.ravel(), "hops": hops.ravel()}

    def _data(self) -> dict[str, int]:
        code = self.code
        return {"layer": code("dissemination"), "detail": code("Data"), "topic": code("stream"), "bytes": DATA_BYTES}

    def _pictures(self, time_us: int) -> None:
        unknown = np.full(len(self.links[0]), -1)
        self.run.write_snapshot(Snapshot(time_us, "active", "", *self.links, unknown))
        for flow in self.flows:
            who = flow.others
            self.run.write_snapshot(
                Snapshot(time_us, "tree", f"{flow.source}/0", who, flow.parent[who], np.full(len(who), -1))
            )
