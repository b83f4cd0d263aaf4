"""Writes down what happens on a live node: the same rows that the simulator writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epicast.core.errors import ConfigError
from epicast.core.ids import NOBODY
from epicast.core.message import Message
from epicast.core.records import Kind, Level
from epicast.stacks.node import Node as StackNode
from epicast.stacks.stack import Stack
from epicast.trace.journal import Journal
from epicast.wire.streams import carries_event

PICTURES_US = 1_000_000

_SEND, _RECEIVE, _DUPLICATE, _DROP = int(Kind.SEND), int(Kind.RECEIVE), int(Kind.DUPLICATE), int(Kind.DROP)
_PUBLISH, _DELIVER, _JOIN = int(Kind.PUBLISH), int(Kind.DELIVER), int(Kind.JOIN)


class Recorder:
    def __init__(self, journal: Journal, level: Level, unix_us: Callable[[], int]) -> None:
        self._journal, self._unix_us = journal, unix_us
        self._full = level == Level.FULL
        self._timer: asyncio.TimerHandle | None = None
        self._carries: dict[type[Message], bool] = {}

    @classmethod
    def create(
        cls,
        folder: Path,
        node_id: str,
        stack: Stack,
        level: str,
        unix_us: Callable[[], int],
        *,
        area: str = "",
        cluster: str = "",
    ) -> Recorder:
        if level.upper() not in Level.__members__ or level == "off":
            raise ConfigError(f"trace_level: expected full or deliveries, got {level!r}")
        kept, now_us = Level[level.upper()], unix_us()
        journal = Journal.create(
            folder,
            node_id=node_id,
            level=kept,
            stack_name=stack.name,
            promises=stack.promises,
            cluster=cluster,
            area=area,
            started_us=now_us,
        )
        journal.write(now_us, _JOIN)
        return cls(journal, kept, unix_us)

    @property
    def lost(self) -> int:
        """Rows for which there was no room."""
        return self._journal.lost

    # Messages

    def sent(self, peer: str, msg: Message, size: int) -> None:
        if self._full:
            self._message(_SEND, peer, msg, size, type(msg).__name__)

    def received(self, peer: str, msg: Message, size: int) -> Any:
        """What `was_duplicate` needs."""
        if not self._full:
            return None
        lost = self._journal.lost
        self._message(_RECEIVE, peer, msg, size, type(msg).__name__)
        return self._journal.last_row() if self._journal.lost == lost else None

    def was_duplicate(self, row: Any) -> None:
        if row is not None:
            self._journal.amend(row, _DUPLICATE)

    def dropped(self, peer: str, msg: Message, reason: str) -> None:
        if self._full:
            self._message(_DROP, peer, msg, 0, reason)

    def _message(self, kind: int, peer: str, msg: Any, size: int, detail: str) -> None:
        carries = self._carries.get(type(msg))
        if carries is None:
            carries = self._carries[type(msg)] = carries_event(type(msg))
        write, now_us = self._journal.write, self._unix_us()
        if carries:
            flags = getattr(msg, "flags", 0)
            write(now_us, kind, peer, msg.source, msg.seq, msg.hops, size, msg.layer, detail, msg.topic, flags)
        else:
            write(now_us, kind, peer, NOBODY, -1, 0, size, msg.layer, detail)

    # Events

    def delivered(self, event: Any, sender: str, own: bool) -> None:
        now_us, write = self._unix_us(), self._journal.write
        if own:
            write(now_us, _PUBLISH, sender, event.source, event.seq, topic=event.topic)
        write(now_us, _DELIVER, sender, event.source, event.seq, event.hops, topic=event.topic)

    def record(self, kind: int, peer: Any, source: Any, seq: int, hops: int, topic: str, detail: str) -> None:
        self._journal.write(self._unix_us(), kind, peer, source, seq, hops, detail=detail, topic=topic)

    # Pictures

    def take_pictures(self, loop: asyncio.AbstractEventLoop, node: StackNode, after_us: int = 0) -> None:
        """At full seconds, so that those of all processes make one picture of the whole. Timers may fire early."""
        due_us = (max(after_us, self._unix_us()) // PICTURES_US + 1) * PICTURES_US

        def take() -> None:
            if self._timer is not None:
                self._picture(node, due_us)
                self.take_pictures(loop, node, due_us)

        self._timer = loop.call_later((due_us - self._unix_us()) / 1e6, take)

    def _picture(self, node: StackNode, now_us: int) -> None:
        """Who our neighbours are, and our parent in each flow."""
        members = node.membership
        edges = [(peer, -1 if (rtt := members.rtt_us(peer)) is None else rtt) for peer in members.peers()]
        self._journal.snapshot(now_us, "active", "", edges)
        tell = getattr(node.dissemination, "parents", None)
        for flow, parent in (tell() if tell is not None else {}).items():
            self._journal.snapshot(now_us, "tree", flow, [] if parent is None else [(parent, -1)])

    # The end

    def end(self, counters: Mapping[str, Any]) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._journal.end("leave", self._unix_us(), counters)
