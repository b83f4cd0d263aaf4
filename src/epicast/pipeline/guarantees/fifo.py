"""Per publisher and topic, numbers go up. Holes are allowed: what is missing is agreement's business."""

from __future__ import annotations

from epicast.pipeline.guarantees.asking import Row, findings, message, number_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.verdict import Outcome

LINE = """
SELECT f.node, f.row, f.message, p.source, p.seq, p.stream,
       MAX(p.seq) OVER (
           PARTITION BY f.node, p.stream ORDER BY f.row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
       ) AS highest
FROM check_firsts AS f JOIN check_posts AS p ON p.message = f.message
"""
LATE = f"""
SELECT l.node, l.source, l.seq, l.highest, l.row, f.row AS before_row
FROM ({LINE}) AS l
JOIN check_posts AS p ON p.stream = l.stream AND p.seq = l.highest
JOIN check_firsts AS f ON f.node = l.node AND f.message = p.message
WHERE l.highest > l.seq
ORDER BY l.row
"""


def fifo(ground: Ground) -> Outcome:
    """Counts the deliveries that come after one with a higher number."""
    kernel = ground.kernel
    late = number_of(kernel, f"SELECT count(*) AS n FROM ({LINE}) AS l WHERE highest > seq")["n"]
    found = findings(kernel, LATE, ("node", "source"), _say, ("before_row", "row")) if late else ()
    return Outcome(ground.firsts, late, found)


def _say(row: Row) -> str:
    return f"process {row['node']} delivered {message(row)} after message {row['highest']}"
