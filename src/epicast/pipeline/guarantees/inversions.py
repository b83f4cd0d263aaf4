"""Inversions: pairs of messages of one topic that two processes delivered in opposite orders.

Two such messages are in one knot, so both lie in one stretch of the line of first deliveries (`total.py`): pairs are
looked for in the stretches alone. A stretch may be as long as the run, where nothing keeps any order; then it is looked
at in blocks, pairs across blocks are left out, and the count is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from epicast.pipeline.kernel import Kernel

BLOCK = 1024  # messages among which every pair is looked at: a megabyte of answers
BUCKETS = 64  # groups of blocks that are looked at together

Ids = npt.NDArray[np.int64]

BLOCKS = """
SELECT f.node, f.message, f.row, b.stretch, b.line, b.block, (b.stretch + b.line + b.block) % {buckets} AS bucket
FROM check_firsts AS f
JOIN (
    SELECT s.message, s.stretch, p.line, CAST(floor(CAST(
               ROW_NUMBER() OVER (PARTITION BY s.stretch, p.line ORDER BY k.first_row) - 1 AS DOUBLE
           ) / {size}) AS BIGINT) AS block
    FROM check_places AS s
    JOIN check_posts AS p ON p.message = s.message
    JOIN check_keys AS k ON k.message = s.message
) AS b ON b.message = f.message
"""
COUNTED = pa.schema({"inversions": pa.int64(), "blocks_cut": pa.int64()})


def count_inversions(kernel: Kernel) -> tuple[int, bool]:
    """How many there are, and whether all pairs were looked at. The tables of `total.py` are known."""
    found = kernel.apply(BLOCKS.format(buckets=BUCKETS, size=BLOCK), ["bucket"], inversions_of, COUNTED)
    inversions, cut = (sum(found.column(name).to_pylist()) for name in COUNTED.names)
    return inversions, not cut


def inversions_of(rows: pa.Table) -> pa.Table:
    """One row for all the blocks of a bucket."""
    stretch, line, block, node, row, message = (
        rows.column(name).to_numpy() for name in ("stretch", "line", "block", "node", "row", "message")
    )
    order = np.lexsort((row, node, block, line, stretch))
    keys = np.stack([stretch, line, block], axis=1)[order]
    total = sum(_inverted_pairs(node[part], message[part]) for part in _parts(order, keys))
    return pa.Table.from_pylist([{"inversions": total, "blocks_cut": int((block > 0).any())}], COUNTED)


def _parts(order: Ids, keys: Ids) -> Iterator[Ids]:
    """Rows with equal keys, which lie side by side."""
    bounds = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    yield from np.split(order, bounds)


def _inverted_pairs(node: Ids, message: Ids) -> int:
    """Of deliveries that are sorted by process, and then by time."""
    ids, which = np.unique(message, return_inverse=True)
    before = np.zeros((len(ids), len(ids)), bool)  # did anybody deliver the first before the second?
    starts = np.flatnonzero(np.diff(node, prepend=node[0] - 1))
    for sequence in {part.tobytes(): part for part in np.split(which, starts[1:])}.values():  # most agree
        # What a process lacks is neither before nor after anything.
        as_earlier, as_later = np.full(len(ids), BLOCK, np.int16), np.full(len(ids), -1, np.int16)
        as_earlier[sequence] = as_later[sequence] = np.arange(len(sequence))
        before |= as_earlier[:, None] < as_later[None, :]
    return int((before & before.T).sum()) // 2
