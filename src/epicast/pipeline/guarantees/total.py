"""Total order: one order in each topic that all processes follow, each leaving out what it lacks.

Two things can go wrong, and are told apart. A *hole* is a message that a process lacks although another has it: holes
are counted by agreement, and leave one order. An *inversion* is a pair of messages that two processes delivered in
opposite orders (`inversions.py`).

There is one order if and only if the graph of "some process delivered this directly before that" has no cycle. Messages
on a cycle are in a *knot*: a strongly connected part of the graph. Every inversion makes one, and so does a longer
circle in which no two processes disagree about any two messages; so it is messages in knots that are violations.

An edge that agrees with the order of first deliveries can be part of a knot only between the ends of an edge that does
not, so only those stretches reach the graph library, and stretches that do not touch are looked at apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from epicast.pipeline.guarantees.asking import Row, inline, names_of, number_of, rows_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.inversions import count_inversions
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Finding, Outcome, counted, notes
from epicast.pipeline.kernel import Kernel

BUCKETS = 64  # groups of stretches that are looked at together
KNOT_SHOWN = 12  # messages of a knot among which a pair in opposite order is looked for

Ids = npt.NDArray[np.int64]

KEYS = "SELECT message, min(row) AS first_row FROM check_firsts GROUP BY message"
PAIRS = """
SELECT p.earlier, p.later, a.first_row AS from_row, b.first_row AS to_row
FROM (SELECT DISTINCT previous AS earlier, message AS later FROM check_firsts WHERE previous IS NOT NULL) AS p
JOIN check_keys AS a ON a.message = p.earlier
JOIN check_keys AS b ON b.message = p.later
"""
# Edges that go back span a stretch each; those that touch are one.
STRETCHES = """
SELECT min(lo) AS lo, max(hi) AS hi FROM (
    SELECT lo, hi, SUM(opens) OVER (ORDER BY lo, hi ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS stretch FROM (
        SELECT lo, hi, CASE WHEN lo <= MAX(hi) OVER (
            ORDER BY lo, hi ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) THEN 0 ELSE 1 END AS opens
        FROM (SELECT to_row AS lo, from_row AS hi FROM check_pairs WHERE to_row < from_row) AS back
    ) AS marked
) AS numbered GROUP BY stretch
"""
PLACES = """
SELECT k.message, s.lo AS stretch
FROM (
    SELECT message, first_row, MAX(lo) OVER (
        ORDER BY first_row, is_message ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS lo
    FROM (
        SELECT message, first_row, CAST(NULL AS BIGINT) AS lo, 1 AS is_message FROM check_keys
        UNION ALL
        SELECT CAST(NULL AS BIGINT) AS message, lo AS first_row, lo, 0 AS is_message FROM check_stretches
    ) AS line
) AS k JOIN check_stretches AS s ON s.lo = k.lo
WHERE k.message IS NOT NULL AND k.first_row <= s.hi
"""
EDGES = f"""
SELECT p.earlier, p.later, a.stretch % {BUCKETS} AS bucket
FROM check_pairs AS p
JOIN check_places AS a ON a.message = p.earlier
JOIN check_places AS b ON b.message = p.later
WHERE a.stretch = b.stretch
"""
KNOTS = pa.schema(
    {
        "knots": pa.int64(),  # of the whole bucket, as is the next
        "tangled": pa.int64(),
        "cycle": pa.list_(pa.int64()),  # a shortest one of one knot
        "others": pa.list_(pa.int64()),  # more of its messages
    }
)


def total(ground: Ground, holes: int) -> Outcome:
    """Counts the messages that have no place in one order."""
    kernel = ground.kernel
    knots = _knots(kernel) if ground.overtaken else []  # none: all follow the order of publication
    tangled, count = (sum(row[column] for row in knots if row["cycle"] is None) for column in ("tangled", "knots"))
    inversions, all_looked_at = count_inversions(kernel) if count else (0, True)
    reason = notes(
        f"{'' if all_looked_at else 'at least '}{counted(inversions, 'inversion')} and {counted(holes, 'hole')}",
        f"{counted(tangled, 'message')} in {counted(count, 'knot')}" if count else "",
    )
    shown = sorted((row for row in knots if row["cycle"] is not None), key=lambda row: min(row["cycle"]))
    return Outcome(
        ground.messages,
        tangled,
        _findings(kernel, shown[:FINDINGS_MAX]) if shown else (),
        reason,
        numbers={"holes": holes, "inversions": inversions, "knots": count},
    )


# Graphs


def _knots(kernel: Kernel) -> list[Row]:
    kernel.define("check_keys", KEYS)
    kernel.define("check_pairs", PAIRS)
    if not number_of(kernel, "SELECT count(*) AS n FROM check_pairs WHERE to_row < from_row")["n"]:
        return []
    kernel.define("check_stretches", STRETCHES)
    kernel.define("check_places", PLACES)
    found: list[Row] = kernel.apply(EDGES, ["bucket"], knots_of, KNOTS).to_pylist()
    return found


def knots_of(edges: pa.Table) -> pa.Table:
    """A row that counts, without a cycle, and one for each of the first knots."""
    ids, ends = np.unique(
        np.concatenate([edges.column("earlier").to_numpy(), edges.column("later").to_numpy()]), return_inverse=True
    )
    tails, heads = ends[: edges.num_rows], ends[edges.num_rows :]
    graph = csr_matrix((np.ones(edges.num_rows, np.int8), (tails, heads)), (len(ids), len(ids)))
    _, part = connected_components(graph, connection="strong")
    sizes = np.bincount(part)
    tangled = np.flatnonzero(sizes[part] > 1)  # ids are in ascending order, so the first of a knot is its lowest
    _, firsts = np.unique(part[tangled], return_index=True)
    rows = [
        {"knots": len(firsts), "tangled": len(tangled), "cycle": None, "others": None},
        *(_shown(graph, part, ids, at) for at in np.sort(tangled[firsts])[:FINDINGS_MAX]),
    ]
    return pa.Table.from_pylist(rows, schema=KNOTS)


def _shown(graph: csr_matrix, part: Ids, ids: Ids, start: int) -> Row:
    cycle = _shortest_cycle(graph, start)
    members = np.flatnonzero(part == part[start])[: 2 * KNOT_SHOWN]
    others = [ids[at] for at in members if at not in cycle]
    return {"knots": 0, "tangled": 0, "cycle": [ids[at] for at in cycle], "others": others[:KNOT_SHOWN]}


def _shortest_cycle(graph: csr_matrix, start: int) -> list[int]:
    order, came_from = breadth_first_order(graph, start, directed=True)
    returning = set(graph[:, [start]].nonzero()[0].tolist())
    at = next(node for node in order.tolist() if node in returning)
    way = [at]
    while way[-1] != start:
        way.append(int(came_from[way[-1]]))
    return way[::-1]


# Findings


def _findings(kernel: Kernel, knots: Sequence[Row]) -> tuple[Finding, ...]:
    """Two processes that disagree about two messages, or else the whole cycle."""
    shown = [list(dict.fromkeys([*knot["cycle"], *knot["others"]]))[:KNOT_SHOWN] for knot in knots]
    seen = _orders(kernel, shown)
    posts = _posts(kernel, {message for messages in shown for message in messages})
    chosen = [
        list(_opposite(messages, seen) or _around(knot["cycle"], seen))
        for knot, messages in zip(knots, shown, strict=True)
    ]
    names = names_of(
        kernel, [order["node"] for orders in chosen for order in orders] + [p["source"] for p in posts.values()]
    )
    texts = {message: f"message {post['seq']} of process {names[post['source']]}" for message, post in posts.items()}
    return tuple(
        Finding(_say(orders, texts, names, len(knot["cycle"])), _proof(orders))
        for knot, orders in zip(knots, chosen, strict=True)
    )


def _orders(kernel: Kernel, knots: Sequence[Sequence[int]]) -> dict[tuple[int, int], Row]:
    """By pair of messages: the first process to have delivered the one before the other."""
    given = inline(((number, message) for number, knot in enumerate(knots) for message in knot), "knot", "message")
    kernel.define(
        "check_knotted", f"SELECT given.knot, f.* FROM check_firsts AS f JOIN {given} ON given.message = f.message"
    )
    rows = rows_of(
        kernel,
        """
        SELECT a.message AS earlier, b.message AS later, min(b.row) AS later_row,
               min_by(a.row, b.row) AS earlier_row, min_by(a.node, b.row) AS node
        FROM check_knotted AS a JOIN check_knotted AS b ON a.knot = b.knot AND a.node = b.node AND a.row < b.row
        GROUP BY a.message, b.message
        """,
    )
    return {(row["earlier"], row["later"]): row for row in rows}


def _posts(kernel: Kernel, messages: set[int]) -> dict[int, Row]:
    given = inline(([message] for message in sorted(messages)), "message")
    sql = f"SELECT p.message, p.source, p.seq FROM check_posts AS p JOIN {given} ON given.message = p.message"
    return {row["message"]: row for row in rows_of(kernel, sql)}


def _opposite(messages: Sequence[int], seen: dict[tuple[int, int], Row]) -> list[Row]:
    for one, two in combinations(messages, 2):
        if (one, two) in seen and (two, one) in seen:
            return [seen[one, two], seen[two, one]]
    return []


def _around(cycle: Sequence[int], seen: dict[tuple[int, int], Row]) -> Iterator[Row]:
    for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if pair in seen:  # a long cycle is not shown in full
            yield seen[pair]


def _proof(orders: Sequence[Row]) -> tuple[int, ...]:
    return tuple(sorted({row for order in orders for row in (order["earlier_row"], order["later_row"])}))


def _say(orders: Sequence[Row], texts: dict[int, str], names: dict[int, str], length: int) -> str:
    parts = [
        f"process {names[order['node']]} delivered {texts[order['earlier']]} before {texts[order['later']]}"
        for order in orders
    ]
    if orders[0]["earlier"] == orders[-1]["later"] and len(orders) == 2:
        return f"{parts[0]}, {parts[1].partition(' delivered')[0]} the other way round"
    return f"{counted(length, 'message')} in a circle: {', '.join(parts)}"
