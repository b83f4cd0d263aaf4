"""Trees in the last picture of the run: one parent for each process, and every way leads to the source.

A tree that is being mended is no violation, so the run must have been at rest (`rest.py`). That is not always to be
seen: a process that lost or changed its parent lately is given time to find its place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from epicast.core.ids import NOBODY
from epicast.pipeline.guarantees.asking import Row, listed, names_of, number_of, rows_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.rest import REST_US, unrest
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Finding, Outcome, counted, not_judged, notes
from epicast.pipeline.kernel import Kernel

CYCLE_SHOWN = 12

UP = "SELECT node FROM nodes WHERE joined_us <= {at} AND (ended_us IS NULL OR ended_us > {at})"
# Every flow of which a tree was seen, in the picture or before: one in which nobody has a parent is in no picture.
FLOWS = """
SELECT f.flow, f.source FROM (
    SELECT flow, TRY_CAST(split_part(flow, '/', 1) AS BIGINT) AS source
    FROM views WHERE overlay = 'tree' AND time_us = {at}
    UNION
    SELECT CONCAT(CAST(source AS STRING), '/', CAST(flow AS STRING)) AS flow, source FROM parents WHERE time_us <= {at}
) AS f JOIN check_up AS u ON u.node = f.source
"""
CHANGES = """
SELECT CONCAT(CAST(source AS STRING), '/', CAST(flow AS STRING)) AS flow, node, max(time_us) AS time_us, max(row) AS row
FROM parents WHERE time_us <= {at} GROUP BY source, flow, node
"""
EDGES = f"""
SELECT f.flow, f.source, u.node, COALESCE(v.peer, CAST({NOBODY} AS BIGINT)) AS parent, p.node IS NOT NULL AS parent_up,
       COALESCE(c.time_us, CAST(-1 AS BIGINT)) > {{at}} - {REST_US} AS moving
FROM check_flows AS f
CROSS JOIN check_up AS u
LEFT JOIN (SELECT flow, node, peer FROM views WHERE overlay = 'tree' AND time_us = {{at}}) AS v
    ON v.flow = f.flow AND v.node = u.node
LEFT JOIN check_up AS p ON p.node = v.peer
LEFT JOIN check_changes AS c ON c.flow = f.flow AND c.node = u.node
"""
FLAWS = pa.schema(
    {
        "flow": pa.string(),
        "flaws": pa.int64(),  # of the whole flow, as is the next; in a row that has nothing else
        "mending": pa.int64(),
        "kind": pa.string(),
        "processes": pa.list_(pa.int64()),
        "below": pa.int64(),  # processes that are cut off with them
        "place": pa.int64(),  # in the list of its flow
    }
)

Ids = npt.NDArray[np.int64]


def tree(ground: Ground) -> Outcome:
    kernel = ground.kernel
    at = rows_of(kernel, "SELECT max(time_us) AS at FROM views")[0]["at"]
    if at is None:
        return not_judged("the run has no picture of its overlay")
    trouble = unrest(ground, at)
    kernel.view("check_up", UP.format(at=at))
    kernel.define("check_flows", FLOWS.format(at=at))
    size = number_of(kernel, "SELECT count(*) AS flows, (SELECT count(*) FROM check_up) AS up FROM check_flows")
    if not size["flows"]:
        return not_judged("the last picture shows no tree whose source is up")
    if trouble:
        return not_judged(trouble)
    kernel.define("check_changes", CHANGES.format(at=at))
    rows: list[Row] = kernel.apply(EDGES.format(at=at), ["flow"], flaws_of, FLAWS).to_pylist()
    flaws, mending = (sum(row[column] for row in rows) for column in ("flaws", "mending"))
    shown = sorted((row for row in rows if row["kind"]), key=lambda row: (row["flow"], row["place"]))[:FINDINGS_MAX]
    reason = notes(
        counted(size["flows"], "flow"), f"{counted(mending, 'flaw')} being mended left out" if mending else ""
    )
    return Outcome(size["flows"] * (size["up"] - 1), flaws, _findings(kernel, shown) if shown else (), reason)


# Graphs


def flaws_of(rows: pa.Table) -> pa.Table:
    """Of one flow: a row per process that is up, or per parent of one that has several."""
    flow, source = rows.column("flow")[0].as_py(), rows.column("source")[0].as_py()
    node, parent = rows.column("node").to_numpy(), rows.column("parent").to_numpy()
    parent_up = rows.column("parent_up").to_numpy()
    moving = set(node[rows.column("moving").to_numpy()].tolist())
    has_parent, others = parent != NOBODY, node != source
    graph, ids = _downwards(node, parent, has_parent & parent_up)
    lasting = [
        *(("root", [n, p]) for n, p in _pairs(node, parent, has_parent & ~others)),
        *(("several", processes) for processes in _several(node[others], parent[others])),
    ]
    mendable = [
        *(("orphan", [n]) for n in np.sort(node[~has_parent & others]).tolist()),
        *(("dead", [n, p]) for n, p in _pairs(node, parent, has_parent & ~parent_up & others)),
        *(("cycle", ids[cycle].tolist()) for cycle in _cycles(graph)),
    ]
    found = lasting + [flaw for flaw in mendable if moving.isdisjoint(_children(*flaw))]
    mending = len(lasting) + len(mendable) - len(found)
    table = [{"flow": flow, "flaws": len(found), "mending": mending, "kind": ""}]
    table += [
        {"flow": flow, "flaws": 0, "mending": 0, "kind": kind, "processes": processes, "place": place}
        | {"below": _below(graph, ids, processes[0])}
        for place, (kind, processes) in enumerate(found[:FINDINGS_MAX])
    ]
    return pa.Table.from_pylist(table if found or mending else [], schema=FLAWS)


def _children(kind: str, processes: list[int]) -> list[int]:
    """Those whose parent is in question."""
    return processes if kind == "cycle" else processes[:1]


def _pairs(node: Ids, parent: Ids, which: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    return sorted(zip(node[which].tolist(), parent[which].tolist(), strict=True))


def _several(node: Ids, parent: Ids) -> list[list[int]]:
    order = np.lexsort((parent, node))
    ids, starts, counts = np.unique(node[order], return_index=True, return_counts=True)
    families = zip(*(each[counts > 1].tolist() for each in (ids, starts, counts)), strict=True)
    return [[child, *parent[order[start : start + count]].tolist()] for child, start, count in families]


def _downwards(node: Ids, parent: Ids, which: npt.NDArray[np.bool_]) -> tuple[csr_matrix, Ids]:
    """From parents to children, and the process behind each number."""
    ids = np.unique(node)
    tails, heads = np.searchsorted(ids, parent[which]), np.searchsorted(ids, node[which])
    return csr_matrix((np.ones(len(tails), np.int8), (tails, heads)), (len(ids), len(ids))), ids


def _cycles(graph: csr_matrix) -> list[list[int]]:
    """One of each part that has any, as the processes in it from child to parent."""
    _, part = connected_components(graph, connection="strong")
    tails, heads = graph.nonzero()
    inside = part[tails] == part[heads]
    above = dict(zip(heads[inside].tolist(), tails[inside].tolist(), strict=True))
    entries = {int(part[child]): child for child in above}
    return [_around(above, child) for child in entries.values()]


def _around(above: dict[int, int], start: int) -> list[int]:
    """Up from child to parent until a process comes again."""
    way = {start: None}
    at = above[start]
    while at not in way:
        way[at] = None
        at = above[at]
    round_trip = list(way)
    return round_trip[round_trip.index(at) :]


def _below(graph: csr_matrix, ids: Ids, process: int) -> int:
    """How many hang on it."""
    at = int(np.searchsorted(ids, process))
    return len(breadth_first_order(graph, at, directed=True, return_predecessors=False)) - 1


# Findings


def _findings(kernel: Kernel, flaws: list[Row]) -> tuple[Finding, ...]:
    processes = sorted({process for row in flaws for process in row["processes"]})
    names = names_of(kernel, processes)
    changes = _changes(kernel, processes)
    ends = _ends(kernel, processes)
    return tuple(Finding(_say(row, names), _proof(row, changes, ends)) for row in flaws)


def _changes(kernel: Kernel, processes: list[int]) -> dict[tuple[str, int], int]:
    """In which row of the trace each process last changed its parent, by flow and process."""
    sql = f"SELECT flow, node, row FROM check_changes WHERE node IN ({listed(processes)})"
    return {(row["flow"], row["node"]): row["row"] for row in rows_of(kernel, sql)}


def _ends(kernel: Kernel, processes: list[int]) -> dict[int, int]:
    sql = f"SELECT node, row FROM check_marks WHERE kind IN ('leave', 'crash') AND node IN ({listed(processes)})"
    return {row["node"]: row["row"] for row in rows_of(kernel, sql)}


def _proof(flaw: Row, rows: dict[tuple[str, int], int], ends: dict[int, int]) -> tuple[int, ...]:
    found = [rows.get((flaw["flow"], process)) for process in _children(flaw["kind"], flaw["processes"])]
    if flaw["kind"] == "dead":
        found.append(ends.get(flaw["processes"][1]))
    return tuple(sorted(row for row in found if row is not None))


def _say(flaw: Row, names: dict[int, str]) -> str:
    who, *others = (f"process {names[process]}" for process in flaw["processes"][:CYCLE_SHOWN])
    cut = f", and cuts off {flaw['below']:,} below it" if flaw["below"] else ""
    text = {
        "root": lambda: f"{who} is the source and has a parent, {others[0]}",
        "orphan": lambda: f"{who} has no parent{cut}",
        "dead": lambda: f"{who} has {others[0]} for parent, which is gone{cut}",
        "several": lambda: f"{who} has several parents: {', '.join(others)}",
        "cycle": lambda: f"parents go round in a cycle: {', '.join([who, *others, who])}",
    }[flaw["kind"]]()
    return f"in flow {flaw['flow']} {text}"
