"""What is sent does not vanish and does not come of nothing.

`send`, `copy` and `drop` are rows of the sender, with the receiver as peer; `receive` and `duplicate` are rows of the
receiver, with the sender as peer. On each directed link no more may arrive or be dropped than was sent or copied, and
over all links the difference is what was under way at the end.
"""

from __future__ import annotations

from epicast.pipeline.guarantees.asking import Row, findings, number_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Finding, Outcome, counted, not_judged

TRAVELS = """
SELECT row, kind, CASE WHEN kind IN ('receive', 'duplicate') THEN peer ELSE node END AS sender,
       CASE WHEN kind IN ('receive', 'duplicate') THEN node ELSE peer END AS receiver,
       CASE WHEN kind IN ('send', 'copy') THEN 1 ELSE -1 END AS balance
FROM events WHERE kind IN ('send', 'copy', 'receive', 'duplicate', 'drop')
"""
# Sums over slices of the trace, and over all of it.
PARTS = f"""
SELECT sender, receiver, CAST(sum(balance) AS BIGINT) AS balance,
       count(*) FILTER (WHERE kind = 'send') AS sends, count(*) FILTER (WHERE kind = 'copy') AS copies,
       count(*) FILTER (WHERE kind = 'drop') AS drops,
       count(*) FILTER (WHERE kind IN ('receive', 'duplicate')) AS receptions
FROM ({TRAVELS}) AS t GROUP BY sender, receiver
"""
LINKS = """
SELECT sender, receiver, sum(balance) AS balance, sum(sends) AS sends, sum(copies) AS copies, sum(drops) AS drops,
       sum(receptions) AS receptions
FROM check_links GROUP BY sender, receiver
"""
TOTALS = f"""
SELECT count(*) AS links, count(*) FILTER (WHERE balance < 0) AS wrong, sum(balance) AS balance,
       sum(sends) AS sends, sum(copies) AS copies, sum(drops) AS drops, sum(receptions) AS receptions
FROM ({LINKS}) AS l
"""
# The row with which a link's balance first falls below nothing is one that nobody can explain.
WRONG = f"""
SELECT l.sender, l.receiver, l.sends, l.copies, l.drops, l.receptions, min(r.row) AS row
FROM ({LINKS}) AS l
JOIN (
    SELECT row, sender, receiver, SUM(balance) OVER (
        PARTITION BY sender, receiver ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS so_far
    FROM ({TRAVELS}) AS t
) AS r ON r.sender = l.sender AND r.receiver = l.receiver AND r.so_far < 0
WHERE l.balance < 0
GROUP BY l.sender, l.receiver, l.sends, l.copies, l.drops, l.receptions
ORDER BY row
"""


def accounting(ground: Ground) -> Outcome:
    if not ground.run.full:
        return not_judged("the trace holds deliveries only: run it with --trace-level full")
    kernel, in_flight = ground.kernel, ground.run.in_flight
    kernel.gather("check_links", PARTS)
    total = number_of(kernel, TOTALS)
    found: tuple[Finding, ...] = ()
    if total["wrong"]:
        found += findings(kernel, WRONG, ("sender", "receiver"), _say, ("row",))
    off = 0 if in_flight is None else total["balance"] - in_flight
    if off:
        found = (Finding(_say_total(total, off), ()), *found)[:FINDINGS_MAX]
    reason = "" if in_flight is not None else "how many were under way at the end is not known: only links were judged"
    return Outcome(total["links"], total["wrong"] + (off != 0), found, reason)


def _say(row: Row) -> str:
    return (
        f"from process {row['sender']} to process {row['receiver']}: {counted(row['sends'], 'message')} sent and"
        f" {row['copies']:,} copied, but {row['receptions']:,} received and {row['drops']:,} dropped"
    )


def _say_total(total: dict[str, int], off: int) -> str:
    sent = f"{counted(total['sends'], 'message')} sent and {total['copies']:,} copied"
    ended = f"{total['receptions']:,} received and {total['drops']:,} dropped"
    under_way = total["balance"] - off
    return f"{sent}, {ended}, {under_way:,} under way: {abs(off):,} too {'few' if off > 0 else 'many'}"
