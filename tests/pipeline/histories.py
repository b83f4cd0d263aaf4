"""Run folders made by hand: a row at a time, with only what a test is about.

    h = History(3)
    m = h.publish(0)          # and delivers it at home
    h.deliver(1, m)
    run = h.save(tmp_path)

Every call that adds a row returns its number; `publish` returns the message, which knows the row of its publication.
A millisecond passes with each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epicast.core.ids import NOBODY
from epicast.core.promises import PROMISES
from epicast.core.records import Kind, Level
from epicast.trace.batch import DTYPES, Batch, Names
from epicast.trace.run import RunFolder
from epicast.trace.tables import Nodes, Snapshot

STEP_US = 1_000
DEFAULTS = {"peer": NOBODY, "source": NOBODY, "seq": -1, "topic": "", "layer": "", "detail": "", "bytes": 0}


class Post(NamedTuple):
    source: int
    seq: int
    topic: str
    row: int


class History:
    def __init__(self, processes: int = 3, *, level: Level = Level.FULL, in_flight: int | None = 0) -> None:
        self.level, self.in_flight = level, in_flight
        self.now_us = 0
        self.rows: list[dict[str, Any]] = []
        self.joined_us: dict[int, int] = {}
        self.name: dict[int, str] = {}  # where it is not the number
        self.area: dict[int, str] = {}  # where it has one
        self.ended: dict[int, tuple[int, str]] = {}
        self.snapshots: list[Snapshot] = []
        self._next_seq: dict[int, int] = {}
        for _ in range(processes):
            self.join()

    def add(self, kind: Kind, node: int, **columns: Any) -> int:
        self.now_us += STEP_US
        self.rows.append({"time_us": self.now_us, "kind": int(kind), "node": node, **columns})
        return len(self.rows) - 1

    def wait(self, seconds: float) -> None:
        self.now_us += round(seconds * 1e6)

    # Processes

    def join(self) -> int:
        node = len(self.joined_us)
        self.add(Kind.JOIN, node)
        self.joined_us[node] = self.now_us
        return node

    def leave(self, node: int) -> int:
        row = self.add(Kind.LEAVE, node)
        self.ended[node] = (self.now_us, "leave")
        return row

    def crash(self, node: int) -> int:
        row = self.add(Kind.CRASH, node)
        self.ended[node] = (self.now_us, "crash")
        return row

    def pause(self, node: int) -> int:
        return self.add(Kind.PAUSE, node)

    def resume(self, node: int) -> int:
        return self.add(Kind.RESUME, node)

    def subscribe(self, *nodes: int, topic: str = "t") -> int:
        return [self.add(Kind.SUBSCRIBE, node, topic=topic) for node in nodes][-1]

    def unsubscribe(self, node: int, topic: str = "t") -> int:
        return self.add(Kind.UNSUBSCRIBE, node, topic=topic)

    # Messages

    def publish(self, source: int, topic: str = "t", *, own: bool = True) -> Post:
        """`own`: the publisher delivers it at once."""
        seq = self._next_seq.get(source, 0)
        self._next_seq[source] = seq + 1
        post = Post(
            source, seq, topic, self.add(Kind.PUBLISH, source, peer=source, source=source, seq=seq, topic=topic)
        )
        if own:
            self.deliver(source, post)
        return post

    def deliver(self, node: int, *posts: Post) -> int:
        """In this order; returns the row of the last."""
        for post in posts:
            row = self.add(Kind.DELIVER, node, source=post.source, seq=post.seq, topic=post.topic)
        return row

    def everywhere(self, *posts: Post, nodes: Sequence[int]) -> None:
        for node in nodes:
            self.deliver(node, *posts)

    def gap(self, node: int, post: Post) -> int:
        return self.add(Kind.GAP, node, source=post.source, seq=post.seq, detail="1 lost")

    # Travels

    def send(self, node: int, peer: int, **columns: Any) -> int:
        return self._travel(Kind.SEND, node, peer, **columns)

    def copy(self, node: int, peer: int) -> int:
        return self._travel(Kind.COPY, node, peer)

    def drop(self, node: int, peer: int, reason: str = "loss") -> int:
        return self._travel(Kind.DROP, node, peer, detail=reason)

    def receive(self, node: int, peer: int, **columns: Any) -> int:
        """`node` gets what `peer` sent."""
        return self._travel(Kind.RECEIVE, node, peer, **columns)

    def duplicate(self, node: int, peer: int) -> int:
        return self._travel(Kind.DUPLICATE, node, peer)

    def _travel(self, kind: Kind, node: int, peer: int, **columns: Any) -> int:
        return self.add(kind, node, peer=peer, **{"bytes": 10, "layer": "dissemination", **columns})

    # Trees

    def parent(self, node: int, parent: int, source: int = 0, flow: int = 0) -> int:
        return self.add(Kind.PARENT, node, peer=parent, source=source, seq=flow)

    def picture(self, edges: Mapping[int, int] | Sequence[tuple[int, int]], flow: str = "0/0") -> None:
        """From child to parent. Pictures without a `wait` between them are of one moment."""
        pairs = sorted(edges.items() if isinstance(edges, Mapping) else edges)
        self.snapshots.append(self._snapshot("tree", flow, pairs))

    def neighbours(self, *pairs: tuple[int, int]) -> None:
        self.snapshots.append(self._snapshot("active", "", pairs))

    def _snapshot(self, overlay: str, flow: str, pairs: Sequence[tuple[int, int]]) -> Snapshot:
        nodes, peers = ([pair[at] for pair in pairs] for at in (0, 1))
        none = np.full(len(pairs), -1, np.int64)
        return Snapshot(self.now_us, overlay, flow, np.array(nodes, np.int64), np.array(peers, np.int64), none)

    # The run folder

    def save(self, path: Path, promises: Sequence[str] = PROMISES) -> RunFolder:
        run = RunFolder.create(
            path, scenario={}, scenario_text="", seed=0, level=self.level, engine="hand", command=[], promises=promises
        )
        names = Names()
        run.events(names).write(self._batch(names))
        for snapshot in self.snapshots:
            run.write_snapshot(snapshot)
        run.write_nodes(self._nodes())
        run.finish({} if self.in_flight is None else {"in_flight": self.in_flight})
        return run

    def _batch(self, names: Names) -> Batch:
        texts = ("topic", "layer", "detail")
        full = [{**DEFAULTS, **row} for row in self.rows]
        coded = [row | {text: names.code(row[text]) for text in texts} for row in full]
        return Batch(**{name: np.array([row.get(name, 0) for row in coded], kind) for name, kind in DTYPES.items()})

    def _nodes(self) -> Nodes:
        nodes = list(self.joined_us)
        ends = [self.ended.get(node, (-1, "")) for node in nodes]
        return Nodes(
            node=np.array(nodes, np.int64),
            name=[self.name.get(node, str(node)) for node in nodes],
            area=[self.area.get(node, "") for node in nodes],
            joined_us=np.array([self.joined_us[node] for node in nodes], np.int64),
            ended_us=np.array([time_us for time_us, _ in ends], np.int64),
            how=[how for _, how in ends],
        )
