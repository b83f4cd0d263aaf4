"""Validity and agreement: whoever stays gets what it is owed."""

from __future__ import annotations

from epicast.pipeline.guarantees.asking import Row, findings, message, number_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Outcome, counted, notes

OWN = """
FROM check_posts AS p
JOIN check_members AS m ON m.node = p.source AND m.crowd = p.crowd AND m.since <= p.moment
LEFT JOIN (SELECT DISTINCT source, seq FROM deliveries WHERE own) AS f ON f.source = p.source AND f.seq = p.seq
"""

HOLES = f"""
SELECT m.node, p.source, p.seq, p.message, t.witness, w.node AS holder
FROM (
    SELECT message, witness FROM check_tally WHERE got > 0 AND got < owed ORDER BY message LIMIT {FINDINGS_MAX}
) AS t
JOIN check_posts AS p ON p.message = t.message
JOIN deliveries AS w ON w.row = t.witness
JOIN check_members AS m ON m.crowd = p.crowd AND m.since <= p.moment
WHERE NOT EXISTS (SELECT 1 FROM check_firsts AS f WHERE f.node = m.node AND f.message = t.message)
ORDER BY p.message, m.node
"""


def validity(ground: Ground) -> Outcome:
    kernel = ground.kernel
    asked = number_of(kernel, f"SELECT count(*) AS owed, count(*) FILTER (WHERE f.source IS NULL) AS missing {OWN}")
    missing = asked["missing"]
    sql = f"SELECT p.message, p.source, p.seq {OWN} WHERE f.source IS NULL ORDER BY p.message"
    found = findings(kernel, sql, ("source",), _say_own, ("message",)) if missing else ()
    return Outcome(asked["owed"], missing, found)


def _say_own(row: Row) -> str:
    return f"process {row['source']} never delivered its own message {row['seq']}"


def agreement(ground: Ground) -> Outcome:
    kernel = ground.kernel
    count = number_of(
        kernel,
        """
        SELECT count(*) FILTER (WHERE got > 0) AS messages,
               sum(owed) FILTER (WHERE got > 0) AS owed,
               sum(owed - got) FILTER (WHERE got > 0) AS holes,
               count(*) FILTER (WHERE got = 0 AND owed > 0) AS lost
        FROM check_tally
        """,
    )
    holes = count["holes"]
    found = findings(kernel, HOLES, ("node", "source", "holder"), _say_hole, ("message", "witness")) if holes else ()
    reason = notes(
        f"{counted(holes, 'hole')} among {counted(count['owed'], 'owed delivery', 'owed deliveries')}"
        f" of {counted(count['messages'], 'message')}",
        f"{counted(count['lost'], 'message')} reached nobody that stayed" if count["lost"] else "",
        f"{counted(ground.gaps, 'gap')} reported" if ground.gaps else "",
        f"{counted(ground.still, 'process', 'processes')} paused at the end left out" if ground.still else "",
    )
    return Outcome(count["owed"], holes, found, reason)


def _say_hole(row: Row) -> str:
    return f"process {row['node']} never delivered {message(row)}, which process {row['holder']} did"
