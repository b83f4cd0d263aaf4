"""What lazy protocols keep: which numbers of each source were seen, and the last payloads, to give them to others.

Payloads are looked up by id for every request, which is why they are a table. They are in the order of their coming,
so the oldest go first, and what is younger or older than something is found from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec

from epicast.core.config import Config
from epicast.core.ids import MsgId, NodeId
from epicast.core.message import Event
from epicast.dissemination.spans import Span, holds


class RecentConfig(Config):
    sources_max: Annotated[int, msgspec.Meta(ge=1)] = 65_536  # our guess; at the cap unknown sources are dropped
    ahead_max: Annotated[int, msgspec.Meta(ge=1)] = 1_024  # numbers kept above a hole, for each source
    recent_messages: Annotated[int, msgspec.Meta(ge=1)] = 512  # our guess: 100 s at the documents' 5 messages a second
    recent_bytes: Annotated[int, msgspec.Meta(ge=1)] = 1 << 24


class Recent:
    __slots__ = ("_bytes", "_bytes_max", "_messages_max", "events", "sources")

    def __init__(self, config: RecentConfig) -> None:
        self._messages_max, self._bytes_max = config.recent_messages, config.recent_bytes
        self._bytes = 0
        self.events: dict[MsgId, tuple[int, Event]] = {}  # with the time of their coming
        self.sources: dict[NodeId, int] = {}  # how many of each

    def __len__(self) -> int:
        return len(self.events)

    def add(self, key: MsgId, now_us: int, event: Event) -> None:
        """The key must be new."""
        self.events[key] = (now_us, event)
        source = key[0]
        self.sources[source] = self.sources.get(source, 0) + 1
        self._bytes += len(event.payload)
        while len(self.events) > self._messages_max or self._bytes > self._bytes_max:
            self._drop_oldest()

    def get(self, key: MsgId) -> Event | None:
        entry = self.events.get(key)
        return None if entry is None else entry[1]

    def between(self, since_us: int, until_us: int) -> Iterator[Event]:
        """Those that came in this time, the newest first."""
        for came_us, event in reversed(self.events.values()):
            if came_us < since_us:
                return
            if came_us <= until_us:
                yield event

    def among(self, wanted: Mapping[NodeId, Sequence[Span]], since_us: int, until_us: int) -> list[Event]:
        """Those of certain numbers that came in this time."""
        numbers = sum([last - first + 1 for spans in wanted.values() for first, last in spans])
        if numbers > len(self.events):
            found = [e for e in self.between(since_us, until_us) if holds(wanted.get(e.source, ()), e.seq)]
            return found[::-1]
        keys = [(source, seq) for source, spans in wanted.items() for a, b in spans for seq in range(a, b + 1)]
        entries = [self.events[key] for key in keys if key in self.events]
        return [event for came_us, event in entries if since_us <= came_us <= until_us]

    def _drop_oldest(self) -> None:
        key = next(iter(self.events))
        _, event = self.events.pop(key)
        self._bytes -= len(event.payload)
        left = self.sources[key[0]] - 1
        if left:
            self.sources[key[0]] = left
        else:
            del self.sources[key[0]]
