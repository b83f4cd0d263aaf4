"""Nobody gets to see what it did not subscribe to. Passing it on for others is allowed, and reported as load."""

from __future__ import annotations

from epicast.core.ids import NOBODY
from epicast.pipeline.guarantees.asking import Row, findings, message, number_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.verdict import Outcome, counted

# When each process was subscribed to a topic, in rows of the trace.
SPANS = """
SELECT node, topic, row AS from_row, to_row FROM (
    SELECT node, topic, row, kind, LEAD(row) OVER (PARTITION BY node, topic ORDER BY row) AS to_row
    FROM check_marks WHERE kind IN ('subscribe', 'unsubscribe')
) AS t WHERE kind = 'subscribe'
"""
OUTSIDE = """
NOT EXISTS (
    SELECT 1 FROM check_spans AS s
    WHERE s.node = d.node AND s.topic = d.topic AND s.from_row < d.row AND (s.to_row IS NULL OR d.row < s.to_row)
)
"""
PARASITES = f"""
SELECT d.row, d.node, d.source, d.seq, d.topic, max(m.row) AS left_row
FROM (SELECT * FROM deliveries AS d WHERE {OUTSIDE}) AS d
LEFT JOIN check_marks AS m
    ON m.node = d.node AND m.topic = d.topic AND m.row < d.row AND m.kind = 'unsubscribe'
GROUP BY d.row, d.node, d.source, d.seq, d.topic
ORDER BY d.row
"""
RELAYED = f"""
SELECT count(*) AS n FROM (
    SELECT node, topic, row FROM events WHERE kind IN ('receive', 'duplicate') AND source <> {NOBODY}
) AS d WHERE {OUTSIDE}
"""


def no_parasites(ground: Ground) -> Outcome:
    kernel = ground.kernel
    if not ground.subscribed:
        return Outcome(ground.deliveries, reason="nobody subscribes to anything, so everyone is a subscriber")
    kernel.define("check_spans", SPANS)
    parasites = number_of(kernel, f"SELECT count(*) AS n FROM deliveries AS d WHERE {OUTSIDE}")["n"]
    found = findings(kernel, PARASITES, ("node", "source"), _say, ("left_row", "row")) if parasites else ()
    return Outcome(ground.deliveries, parasites, found, _relay_load(ground))


def _relay_load(ground: Ground) -> str:
    if not ground.run.full:
        return ""
    relayed = number_of(ground.kernel, RELAYED)["n"]
    return f"{counted(relayed, 'payload')} received by processes that do not subscribe to the topic"


def _say(row: Row) -> str:
    why = "does not subscribe to" if row["left_row"] is None else "no longer subscribes to"
    return f"process {row['node']} delivered {message(row)} but {why} {row['topic']!r}"
