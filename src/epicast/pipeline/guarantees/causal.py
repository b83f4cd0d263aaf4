"""Causal order, recomputed from the trace: nobody sees an answer before the question.

One message comes before another if the publisher of the second had delivered or published the first when it published
the second; and whatever comes before the first comes before the second. Numbers of messages are rows of publications,
so what comes before has a lower number, and the relation has no cycle.

Pairs are never listed in full. Three things keep the work near the number of deliveries:
- A publisher's *steps* are what it delivered or published since its previous publication. Of these only those are kept
  that the latest of them does not already follow: usually what was under way at the same time.
- A delivery is worth a look only if the process later delivered something with a lower number.
- Where a process lacks a message, the walk goes on to what came before that one, but only down to the lowest number
  that the process delivered later.
"""

from __future__ import annotations

from itertools import pairwise

from epicast.pipeline.guarantees.asking import Row, inline, message, names_of, number_of, rows_of
from epicast.pipeline.guarantees.ground import Ground
from epicast.pipeline.guarantees.verdict import FINDINGS_MAX, Finding, Outcome, counted
from epicast.pipeline.kernel import Kernel

WALK_MAX = 100
"""Steps back through messages that a process lacks. Longer chains of holes are left unexplored, and that is said."""
WALK_ROWS_MAX = 20_000_000
"""What one step may find; in a run that needs more, hardly anything is in order."""

# What publishers did, in their order. A delivery before its publication is integrity's business: no step begins there.
ACTS = """
SELECT f.node, f.message, f.row, 0 AS own
FROM check_firsts AS f JOIN check_posts AS p ON p.message = f.message
WHERE f.node <> p.source AND f.row > f.message AND f.node IN (SELECT source FROM check_posts)
UNION ALL
SELECT source AS node, message, message AS row, 1 AS own FROM check_posts
"""
# The window runs backwards: a frame that looks ahead is quadratic in Spark.
STEPS = """
SELECT later, earlier, MAX(earlier) OVER (PARTITION BY later) AS latest FROM (
    SELECT message AS earlier, MIN(CASE WHEN own = 1 THEN row END) OVER (
        PARTITION BY node ORDER BY row DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS later
    FROM check_acts
) AS t WHERE later IS NOT NULL
"""
KEPT_STEPS = f"""
SELECT s.later, s.earlier
FROM ({STEPS}) AS s
JOIN check_posts AS p ON p.message = s.latest
LEFT JOIN check_acts AS a ON a.node = p.source AND a.message = s.earlier AND a.row < s.latest
WHERE s.earlier = s.latest OR a.node IS NULL
"""

# Where a walk may lead from a delivery, in one step and from a hole in one more.
FIRST_CLAIMS = """
SELECT c.node, c.message AS later, c.row AS later_row, c.lowest_later, s.earlier, CAST(NULL AS STRING) AS path
FROM check_firsts AS c JOIN check_steps AS s ON s.later = c.message AND s.earlier >= c.lowest_later
WHERE c.lowest_later < c.message
"""
NEXT_CLAIMS = """
SELECT w.node, w.later, w.later_row, w.lowest_later, s.earlier,
       MIN(CONCAT(COALESCE(w.path, CAST(w.earlier AS STRING)), ' ', CAST(s.earlier AS STRING))) AS path
FROM {before} AS w JOIN check_steps AS s ON s.later = w.earlier AND s.earlier >= w.lowest_later
WHERE w.earlier_row IS NULL
GROUP BY w.node, w.later, w.later_row, w.lowest_later, s.earlier
"""
# What it leads to: violations (with the row of the earlier message) and holes (without), from which it goes on. The
# inner join comes first, so that claims, if few, are sent to where the deliveries are and not the other way round.
WALK = """
SELECT c.node, c.later, c.later_row, c.lowest_later, c.earlier, f.row AS earlier_row, c.path
FROM {claims} AS c
LEFT JOIN (
    SELECT DISTINCT f.node, f.message, f.row
    FROM check_firsts AS f JOIN {claims} AS k ON k.node = f.node AND k.earlier = f.message
) AS f ON f.node = c.node AND f.message = c.earlier
WHERE f.row IS NULL OR f.row > c.later_row
"""


def causal(ground: Ground) -> Outcome:
    """Counts the deliveries that came too early."""
    if not ground.overtaken:
        return Outcome(ground.firsts)  # all in the order of publication
    kernel = ground.kernel
    kernel.define("check_acts", ACTS)
    kernel.define("check_steps", KEPT_STEPS)
    walks, unexplored = _walk(kernel)
    wrong = " UNION ALL ".join(f"SELECT * FROM {walk} WHERE earlier_row IS NOT NULL" for walk in walks)
    sql = f"SELECT count(*) AS n FROM (SELECT DISTINCT node, later FROM ({wrong}) AS w) AS t"
    early = number_of(kernel, sql)["n"]
    reason = f"{counted(unexplored, 'chain')} of holes left unexplored after {WALK_MAX} steps" if unexplored else ""
    return Outcome(
        ground.firsts, early, _findings(kernel, wrong) if early else (), reason, judged=early > 0 or not unexplored
    )


def _walk(kernel: Kernel) -> tuple[list[str], int]:
    """The tables of what was found, and how many chains of holes were left."""
    walks: list[str] = []
    while True:
        name = f"check_walk_{len(walks)}"
        claims = f"check_claims_{len(walks)}"
        kernel.define(claims, NEXT_CLAIMS.format(before=walks[-1]) if walks else FIRST_CLAIMS)
        kernel.define(name, f"{WALK.format(claims=claims)} LIMIT {WALK_ROWS_MAX}")
        walks.append(name)
        sql = f"SELECT count(*) AS size, count(*) FILTER (WHERE earlier_row IS NULL) AS holes FROM {name}"
        found = number_of(kernel, sql)
        if not found["holes"] or found["size"] == WALK_ROWS_MAX or len(walks) > WALK_MAX:
            return walks, found["holes"]


def _findings(kernel: Kernel, wrong: str) -> tuple[Finding, ...]:
    rows = rows_of(
        kernel,
        f"""
        SELECT w.node, w.later, w.later_row, w.earlier_row, COALESCE(w.path, CAST(w.earlier AS STRING)) AS path,
               l.source AS later_source, l.seq AS later_seq, e.source AS earlier_source, e.seq AS earlier_seq
        FROM (
            SELECT *, ROW_NUMBER() OVER (
                PARTITION BY node, later, earlier ORDER BY COALESCE(LENGTH(path), 0), path
            ) AS place
            FROM ({wrong}) AS each_way
        ) AS w
        JOIN check_posts AS l ON l.message = w.later
        JOIN check_posts AS e ON e.message = w.earlier
        WHERE w.place = 1
        ORDER BY w.later_row, w.earlier LIMIT {FINDINGS_MAX}
        """,
    )
    people = ("node", "later_source", "earlier_source")
    names = names_of(kernel, (row[column] for row in rows for column in people))
    heard = _heard(kernel, [pair for row in rows for pair in _path(row)])
    return tuple(
        Finding(_say(row | {column: names[row[column]] for column in people}), _proof(row, heard)) for row in rows
    )


def _path(row: Row) -> list[tuple[int, int]]:
    """From the later message back to the earlier one, step by step."""
    numbers = [row["later"], *(int(number) for number in row["path"].split())]
    return list(pairwise(numbers))


def _heard(kernel: Kernel, steps: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """In which row the publisher of the later message delivered or published the earlier one."""
    rows = rows_of(
        kernel,
        f"""
        SELECT given.later, given.earlier, a.row FROM {inline(sorted(set(steps)), "later", "earlier")}
        JOIN check_posts AS p ON p.message = given.later
        JOIN check_acts AS a ON a.node = p.source AND a.message = given.earlier
        """,
    )
    return {(row["later"], row["earlier"]): row["row"] for row in rows}


def _proof(row: Row, heard: dict[tuple[int, int], int]) -> tuple[int, ...]:
    """Both deliveries, and how the later message came to follow the earlier one."""
    path = _path(row)
    return tuple(sorted({row["later_row"], row["earlier_row"], *(n for step in path for n in (*step, heard[step]))}))


def _say(row: Row) -> str:
    later, earlier = (message(row, f"{which}_source", f"{which}_seq") for which in ("later", "earlier"))
    steps = len(row["path"].split())
    how = "which its publisher knew" if steps == 1 else f"on which it depends through {counted(steps - 1, 'message')}"
    return f"process {row['node']} delivered {later} before {earlier}, {how}"
