"""The two small tables of a run as a driver hands them over: pictures of an overlay, and the processes of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from epicast.trace.batch import Int64s
from epicast.trace.schema import NODES, SNAPSHOTS


class Snapshot(NamedTuple):
    """The edges of one overlay at one moment."""

    time_us: int
    overlay: str
    flow: str
    node: Int64s
    peer: Int64s
    value: Int64s

    def table(self) -> pa.Table:
        rows = len(self.node)
        columns = [
            pa.array(np.full(rows, self.time_us, np.int64)),
            _same(self.overlay, rows),
            _same(self.flow, rows),
            *(pa.array(column, pa.int64()) for column in (self.node, self.peer, self.value)),
        ]
        return pa.Table.from_arrays(columns, schema=SNAPSHOTS)


class Nodes(NamedTuple):
    """Every process of a run, in the order of their joining."""

    node: Int64s
    name: Sequence[str]
    area: Sequence[str]
    joined_us: Int64s
    ended_us: Int64s  # -1 for one that was up to the end
    how: Sequence[str]

    def table(self) -> pa.Table:
        ended_us = np.asarray(self.ended_us, np.int64)
        columns = [
            pa.array(self.node, pa.int64()),
            pa.array(self.name, pa.string()),
            pa.array(self.area, pa.string()).dictionary_encode(),
            pa.array(self.joined_us, pa.int64()),
            pa.array(ended_us, mask=ended_us < 0),
            pa.array(self.how, pa.string()).dictionary_encode(),
        ]
        return pa.Table.from_arrays(columns, schema=NODES)


def _same(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
