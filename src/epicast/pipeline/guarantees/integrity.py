"""At most once, and nothing but what was published."""

from __future__ import annotations

from epicast.pipeline.guarantees.asking import Row, findings, message, number_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Finding, Outcome

# Deliveries that a publication does not account for.
STRAYS = """
SELECT d.row, d.node, d.source, d.seq, d.topic, p.message AS published, p.topic AS published_topic,
       CASE WHEN p.message IS NULL THEN 'unpublished' WHEN d.row < p.message THEN 'early' ELSE 'topic' END AS wrong
FROM deliveries AS d LEFT JOIN check_posts AS p ON p.source = d.source AND p.seq = d.seq
WHERE p.message IS NULL OR d.row < p.message OR d.topic <> p.topic
"""
REPEATED = """
SELECT r.node, r.source, r.seq, r.times, r.first_row, min(d.row) AS second_row
FROM check_repeats AS r
JOIN deliveries AS d ON d.node = r.node AND d.source = r.source AND d.seq = r.seq AND d.row > r.first_row
GROUP BY r.node, r.source, r.seq, r.times, r.first_row
ORDER BY r.first_row
"""


def integrity(ground: Ground) -> Outcome:
    kernel = ground.kernel
    repeated = number_of(kernel, "SELECT sum(times - 1) AS n FROM check_repeats")["n"] if ground.repeats else 0
    strays = number_of(kernel, f"SELECT count(*) AS n FROM ({STRAYS}) AS s")["n"]
    found: tuple[Finding, ...] = ()
    if repeated:
        found += findings(kernel, REPEATED, ("node", "source"), _say_repeated, ("first_row", "second_row"))
    if strays:
        found += findings(kernel, f"{STRAYS} ORDER BY d.row", ("node", "source"), _say_stray, ("row", "published"))
    return Outcome(ground.deliveries, repeated + strays, found[:FINDINGS_MAX])


def _say_repeated(row: Row) -> str:
    return f"process {row['node']} delivered {message(row)} {row['times']} times"


def _say_stray(row: Row) -> str:
    start = f"process {row['node']} delivered {message(row)}"
    if row["wrong"] == "unpublished":
        return f"{start}, which was never published"
    if row["wrong"] == "early":
        return f"{start} before it was published"
    return f"{start} on topic {row['topic']!r}, but it was published on {row['published_topic']!r}"
