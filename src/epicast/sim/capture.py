"""From what the engine captures to the columns of the trace.

A row in the engine is five integers: time, kind, node, peer and the number of a *description* (`info`), shared by all
rows that speak of one message. Descriptions become columns once per batch, by indexing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from epicast.core.ids import NOBODY
from epicast.core.message import Message
from epicast.trace.batch import DTYPES, Batch, Names

ROW_COLUMNS = ("time_us", "kind", "node", "peer")
INFO_COLUMNS = ("source", "seq", "hops", "bytes", "layer", "detail", "topic", "flags")


class Describer:
    """Turns messages and records into descriptions: eight integers, with texts replaced by their codes."""

    def __init__(self) -> None:
        self.names = Names()
        self.drops: dict[str, int] = {}  # how many messages were lost, by reason
        self._kinds: dict[type[Message], tuple[int, int, bool, bool]] = {}

    def message(self, msg: Message, bytes_each: int) -> tuple[int, ...]:
        kind = self._kinds.get(msg.__class__)
        if kind is None:
            kind = self._kinds[msg.__class__] = self._learn(msg.__class__)
        layer, name, carries_event, has_flags = kind
        event: Any = msg
        flags = event.flags if has_flags else 0
        if not carries_event:
            return (NOBODY, -1, 0, bytes_each, layer, name, 0, flags)
        topic = self.names.code(event.topic)
        return (event.source, event.seq, event.hops, bytes_each, layer, name, topic, flags)

    def event(self, source: int, seq: int, hops: int, topic: str, detail: str) -> tuple[int, ...]:
        return (source, seq, hops, 0, 0, self.names.code(detail), self.names.code(topic), 0)

    def dropped(self, info: Iterable[int], reason: str) -> tuple[int, ...]:
        source, seq, hops, size, layer, _, topic, flags = info
        return (source, seq, hops, size, layer, self.names.code(reason), topic, flags)

    def _learn(self, kind: type[Message]) -> tuple[int, int, bool, bool]:
        fields = kind.__struct_fields__
        carries_event = {"source", "seq", "hops", "topic"} <= set(fields)
        return self.names.code(kind.layer), self.names.code(kind.__name__), carries_event, "flags" in fields


def batch_from_rows(rows: npt.NDArray[np.int64], infos: npt.NDArray[np.int64], info_base: int) -> Batch:
    """Rows of (time, kind, node, peer, info) and descriptions of eight columns."""
    described = infos[rows[:, 4] - info_base]
    columns = {name: rows[:, at] for at, name in enumerate(ROW_COLUMNS)}
    columns |= {name: described[:, at] for at, name in enumerate(INFO_COLUMNS)}
    return Batch(**{name: column.astype(DTYPES[name]) for name, column in columns.items()})
