"""The tables that several checks stand on, each computed once.

    check_marks    a row per mark: what became of processes and their subscriptions, and gaps they reported
    check_posts    a row per message: its number in here is the row of its publication, so that keys are one integer;
                   `line` stands for its topic, which has an order of its own
    check_repeats  a row per process and message that it delivered more than once
    check_firsts   a row per process and message that it delivered: its first delivery, with the message of the same
                   topic before it and the lowest number among those, of any topic, that the process delivered later
    check_members  a row per process that stays and crowd to which it belongs
    check_tally    a row per message: by how many it is owed, and how many of these have delivered it

A *crowd* is who should deliver the same messages: the subscribers of a topic or, in a run without subscriptions,
everyone. A process *stays* for a message if it belongs to the crowd from the publication to the end. One that stands
still at the end, paused, has not had its chance and is left out. `since` and `moment` are comparable within a crowd:
rows of the trace where there are subscriptions, times where there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from epicast.core.ids import NOBODY
from epicast.pipeline.guarantees.asking import number_of
from epicast.pipeline.kernel import Kernel, RunFacts

MARKS = """
SELECT row, time_us, kind, node, topic FROM marks
WHERE kind IN ('join', 'leave', 'crash', 'pause', 'resume', 'subscribe', 'unsubscribe', 'gap')
"""

REPEATS = """
SELECT node, source, seq, count(*) AS times, min(row) AS first_row
FROM deliveries GROUP BY node, source, seq HAVING count(*) > 1
"""

TOPICS = "SELECT topic, min(row) AS crowd FROM check_marks WHERE kind = 'subscribe' GROUP BY topic"

POSTS = """
SELECT p.row AS message, p.source, p.seq, p.topic, MIN(p.row) OVER (PARTITION BY p.source, p.topic) AS stream,
       l.line, {crowd} AS crowd, {moment} AS moment
FROM publications AS p
JOIN (SELECT topic, min(row) AS line FROM publications GROUP BY topic) AS l ON l.topic = p.topic {topics}
"""

# The windows run backwards: a frame that looks ahead is quadratic in Spark.
FIRSTS = """
SELECT node, message, row,
       LEAD(message) OVER (PARTITION BY node, line ORDER BY row DESC) AS previous,
       MIN(message) OVER (
           PARTITION BY node ORDER BY row DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
       ) AS lowest_later
FROM (
    SELECT d.node, p.message, p.line, d.row
    FROM deliveries AS d JOIN check_posts AS p ON p.source = d.source AND p.seq = d.seq {once}
) AS f
"""
ONCE = """
WHERE NOT EXISTS (
    SELECT 1 FROM check_repeats AS r
    WHERE r.node = d.node AND r.source = d.source AND r.seq = d.seq AND r.first_row < d.row
)
"""

STILL = """
SELECT node FROM (
    SELECT node, kind, ROW_NUMBER() OVER (PARTITION BY node ORDER BY row DESC) AS back
    FROM check_marks WHERE kind IN ('pause', 'resume', 'leave', 'crash'){until}
) AS t WHERE back = 1 AND kind = 'pause'
"""
STAYING = f"""
SELECT node, joined_us FROM nodes AS n
WHERE ended_us IS NULL AND NOT EXISTS (SELECT 1 FROM ({STILL.format(until="")}) AS s WHERE s.node = n.node)
"""
EVERYONE = f"SELECT node, CAST(0 AS BIGINT) AS crowd, joined_us AS since FROM ({STAYING}) AS s"
SUBSCRIBERS = f"""
SELECT m.node, t.crowd, min(m.row) AS since
FROM check_marks AS m
JOIN check_topics AS t ON t.topic = m.topic
JOIN ({STAYING}) AS s ON s.node = m.node
LEFT JOIN (
    SELECT node, topic, max(row) AS row FROM check_marks WHERE kind = 'unsubscribe' GROUP BY node, topic
) AS u ON u.node = m.node AND u.topic = m.topic
WHERE m.kind = 'subscribe' AND m.row > COALESCE(u.row, -1)
GROUP BY m.node, t.crowd
"""

# How many had come by then, for every message at once: members and messages in one line, and a running count.
TALLY = """
SELECT o.message, o.owed, COALESCE(g.got, 0) AS got, g.witness
FROM (
    SELECT message, SUM(comes) OVER (
        PARTITION BY crowd ORDER BY moment, is_post ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS owed, is_post
    FROM (
        SELECT crowd, since AS moment, 0 AS is_post, 1 AS comes, CAST(NULL AS BIGINT) AS message FROM check_members
        UNION ALL
        SELECT crowd, moment, 1 AS is_post, 0 AS comes, message FROM check_posts
    ) AS line
) AS o
LEFT JOIN (
    SELECT f.message, count(*) AS got, min(f.row) AS witness
    FROM check_firsts AS f
    JOIN check_posts AS p ON p.message = f.message
    JOIN check_members AS m ON m.node = f.node AND m.crowd = p.crowd
    WHERE m.since <= p.moment
    GROUP BY f.message
) AS g ON g.message = o.message
WHERE o.is_post = 1
"""

MARKED = f"""
SELECT count(*) FILTER (WHERE kind = 'subscribe') AS subscriptions,
       count(*) FILTER (WHERE kind = 'gap') AS gaps,
       (SELECT count(*) FROM ({STILL.format(until="")}) AS s) AS still,
       (SELECT count(*) FROM deliveries) AS deliveries,
       (SELECT count(*) FROM check_repeats) AS repeats
FROM check_marks
"""
COUNTS = """
SELECT count(*) AS firsts, count(DISTINCT message) AS messages,
       count(*) FILTER (WHERE lowest_later < message) AS overtaken
FROM check_firsts
"""


@dataclass(frozen=True)
class Ground:
    kernel: Kernel
    run: RunFacts
    subscribed: bool  # does anybody subscribe to anything?
    gaps: int  # reported by processes that gave messages up
    still: int  # processes that are paused at the end
    deliveries: int
    repeats: int  # pairs of a process and a message that it delivered more than once
    firsts: int  # rows of check_firsts
    messages: int  # that somebody delivered
    overtaken: int  # firsts before which the process delivered something that was published later


def lay(kernel: Kernel, run: RunFacts) -> Ground:
    kernel.define("check_marks", MARKS)
    kernel.define("check_repeats", REPEATS)
    marks = number_of(kernel, MARKED)
    subscribed = marks.pop("subscriptions") > 0
    _define_posts(kernel, subscribed)
    kernel.define("check_firsts", FIRSTS.format(once=ONCE if marks["repeats"] else ""))
    kernel.define("check_members", SUBSCRIBERS if subscribed else EVERYONE)
    kernel.define("check_tally", TALLY)
    return Ground(kernel, run, subscribed, **marks, **number_of(kernel, COUNTS))


def _define_posts(kernel: Kernel, subscribed: bool) -> None:
    if subscribed:
        kernel.define("check_topics", TOPICS)
        crowd, moment = f"COALESCE(t.crowd, CAST({NOBODY} AS BIGINT))", "p.row"
        topics = "LEFT JOIN check_topics AS t ON t.topic = p.topic"
    else:
        crowd, moment, topics = "CAST(0 AS BIGINT)", "p.published_us", ""
    kernel.define("check_posts", POSTS.format(crowd=crowd, moment=moment, topics=topics))
