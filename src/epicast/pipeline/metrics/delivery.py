"""Who got which message, how fast, over how many links and how often.

A message is *owed* to each process that was up from its publication to the end of the run. The publisher's own delivery
counts as a delivery but has no latency. What a process that joined after the publication caught up on counts as a
delivery too, but tells nothing about how fast messages travel.
"""

from __future__ import annotations

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.metrics.distributions import FEW, Distribution
from epicast.pipeline.metrics.measures import ratio
from epicast.pipeline.metrics.scope import Scope, stays_sql

NAMES = {
    "messages": "messages published",
    "deliveries": "deliveries, the publishers' own included",
    "owed": "pairs of a message and a process that was up from its publication to the end",
    "missing": "owed pairs without a delivery",
    "delivery_ratio": "share of the owed pairs that were delivered",
    "complete_messages_share": "share of the messages that every process to which they were owed delivered",
    "repeated": "deliveries of what the process had delivered before, or of what nobody published",
    "gaps": "times that a process gave up on messages that no neighbour holds any more",
    "copies_per_delivery": "receptions of payloads for each delivery that is not the publisher's own",
    "duplicates_per_delivery": "receptions of payloads that were not new for each delivery that is not the own",
    "duplicates_per_message": "receptions of payloads that were not new for each message, over all processes",
    "copies_after_first": "copies per delivery without the first message of each source and topic, which builds a tree",
    "copies_second_half": "copies per delivery of the later half of the messages of each source and topic",
}


def define(kernel: Kernel, run: RunFacts) -> None:
    if run.full:
        kernel.gather("measured_copies", _COPIES)
        kernel.define("measured_duplicates", _DUPLICATES)
    kernel.define("measured_messages", _messages_sql(run))


_COPIES = f"""
    SELECT source, seq, node, count(*) AS times
    FROM events WHERE kind = 'duplicate' AND source <> {NOBODY} GROUP BY source, seq, node
"""  # grain: one row per slice of the trace, message and process that got it more than once

_DUPLICATES = """
    SELECT d.source, d.seq, d.node, d.times, n.ended_us IS NULL AND n.joined_us <= p.published_us AS owed
    FROM (SELECT source, seq, node, CAST(sum(times) AS BIGINT) AS times
          FROM measured_copies GROUP BY source, seq, node) AS d
    JOIN publications AS p ON d.source = p.source AND d.seq = p.seq
    JOIN nodes AS n ON d.node = n.node
"""  # grain: one row per message and process that got it more than once

_OWED = """
    SELECT source, seq, owed FROM (
        SELECT source, seq, of_message,
               CAST(sum(1 - of_message) OVER (ORDER BY time_us, of_message
                                              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS owed
        FROM (SELECT joined_us AS time_us, 0 AS of_message, CAST(-1 AS BIGINT) AS source, CAST(-1 AS BIGINT) AS seq
              FROM nodes WHERE ended_us IS NULL
              UNION ALL SELECT published_us, 1, source, seq FROM publications) AS moments) AS counted
    WHERE of_message = 1
"""  # grain: one row per message. Counting joins along time spares the product of messages and processes

_REACHED = """
    SELECT source, seq, CAST(sum(others) AS BIGINT) AS others, count(*) AS processes,
           CAST(sum(stays) AS BIGINT) AS reached, max(last_us) AS last_us
    FROM (SELECT d.source, d.seq, d.node, sum(CASE WHEN d.own THEN 0 ELSE 1 END) AS others,
                 max(CASE WHEN n.ended_us IS NULL AND n.joined_us <= d.published_us THEN 1 ELSE 0 END) AS stays,
                 max(CASE WHEN NOT d.own AND n.joined_us <= d.published_us THEN d.latency_us END) AS last_us
          FROM deliveries AS d LEFT JOIN nodes AS n ON d.node = n.node
          WHERE d.published_us IS NOT NULL GROUP BY d.source, d.seq, d.node) AS pairs
    GROUP BY source, seq
"""  # grain: one row per message that anyone delivered


def _messages_sql(run: RunFacts) -> str:
    """Grain: one row per message. `place` counts from 1 within its source and topic, up to `places`."""
    duplicates = (
        "SELECT source, seq, CAST(sum(times) AS BIGINT) AS duplicates, count(*) FILTER (WHERE owed) AS repeated_pairs "
        "FROM measured_duplicates GROUP BY source, seq"
        if run.full
        else "SELECT source, seq, 0 AS duplicates, 0 AS repeated_pairs FROM publications WHERE false"
    )
    return f"""
        SELECT p.source, p.seq, p.published_us, p.place, p.places, o.owed, r.last_us,
               COALESCE(r.others, 0) AS others, COALESCE(r.processes, 0) AS processes,
               COALESCE(r.reached, 0) AS reached, COALESCE(d.duplicates, 0) AS duplicates,
               COALESCE(d.repeated_pairs, 0) AS repeated_pairs
        FROM (SELECT source, seq, published_us, row_number() OVER (PARTITION BY source, topic ORDER BY row) AS place,
                     count(*) OVER (PARTITION BY source, topic) AS places FROM publications) AS p
        JOIN ({_OWED}) AS o ON p.source = o.source AND p.seq = o.seq
        LEFT JOIN ({_REACHED}) AS r ON p.source = r.source AND p.seq = r.seq
        LEFT JOIN ({duplicates}) AS d ON p.source = d.source AND p.seq = d.seq
    """


def metrics(kernel: Kernel, run: RunFacts, scope: Scope) -> dict[str, float]:
    row = kernel.query(_SUMS).to_pylist()[0]
    deliveries = scope.count("deliver")
    found = {name: row[name] for name in ("messages", "owed", "missing")}
    found |= {
        "deliveries": deliveries,
        "repeated": deliveries - row["processes"],
        "gaps": scope.count("gap"),
        **ratio("delivery_ratio", row["owed"] - row["missing"], row["owed"]),
        **ratio("complete_messages_share", row["complete"], row["messages"]),
    }
    return found | (_copies(row, scope) if run.full else {})


def _copies(row: dict[str, int], scope: Scope) -> dict[str, float]:
    duplicates, others = scope.count("duplicate"), scope.count("deliver") - scope.count("publish")
    found = ratio("copies_per_delivery", others + duplicates, others)
    found |= ratio("duplicates_per_delivery", duplicates, others)
    found |= ratio("duplicates_per_message", duplicates, row["messages"])
    for part in ("after_first", "second_half"):
        arrived = row[f"others_{part}"]
        found |= ratio(f"copies_{part}", arrived + row[f"duplicates_{part}"], arrived)
    return found


def _sums_sql() -> str:
    def total(column: str, name: str, condition: str = "true") -> str:
        return f"CAST(COALESCE(sum({column}) FILTER (WHERE {condition}), 0) AS BIGINT) AS {name}"

    columns = [
        "count(*) AS messages",
        "count(*) FILTER (WHERE reached >= owed) AS complete",
        total("owed", "owed"),
        total("owed - reached", "missing"),
        total("processes", "processes"),
    ]
    for part, condition in (("after_first", "place > 1"), ("second_half", "2 * place > places AND place > 1")):
        columns += [total(column, f"{column}_{part}", condition) for column in ("others", "duplicates")]
    return f"SELECT {', '.join(columns)} FROM measured_messages"


_SUMS = _sums_sql()


# Distributions

LATENCY = Distribution(
    "latency_ms",
    "from publication to delivery by another process that was up at the publication, in ms",
    unit=1000,
)
HOPS = Distribution(
    "hops", "links that a message crossed to be delivered by another process that was up at its publication"
)
LAST_RECEIVER = Distribution(
    "last_receiver_ms",
    "from the publication of a message to its last delivery by a process that was up at the publication, in ms",
    unit=1000,
)
SPAN = Distribution(
    "span_ms", "from the first to the last delivery of others' messages at a process that stays, in ms", unit=1000
)
DUPLICATES = Distribution(
    "duplicates", "receptions of a payload that was not new, over all owed pairs of a message and a process"
)
DUPLICATES_PER_PROCESS = Distribution(
    "duplicates_per_process",
    "mean number of duplicates of an owed message at a process that was up to the end, to two places",
    unit=100,
    statistics=(*FEW, "cv"),
)
DISTRIBUTIONS = (LATENCY, HOPS, LAST_RECEIVER, SPAN, DUPLICATES, DUPLICATES_PER_PROCESS)


def counts(run: RunFacts, scope: Scope) -> dict[Distribution, str]:
    found = {
        LATENCY: f"SELECT d.latency_us AS amount, 1 AS times {_TIMELY}",
        HOPS: f"SELECT d.hops AS amount, 1 AS times {_TIMELY}",
        LAST_RECEIVER: "SELECT last_us AS amount, 1 AS times FROM measured_messages",
        SPAN: _SPANS.format(stays=stays_sql(scope.window_us[0], "n")),
    }
    return found | ({DUPLICATES: _DUPLICATES_OF_PAIRS, DUPLICATES_PER_PROCESS: _MEAN_DUPLICATES} if run.full else {})


_TIMELY = """
    FROM deliveries AS d JOIN nodes AS n ON d.node = n.node
    WHERE NOT d.own AND n.joined_us <= d.published_us
"""

_SPANS = """
    SELECT max(d.time_us) - min(d.time_us) AS amount, 1 AS times
    FROM deliveries AS d JOIN nodes AS n ON d.node = n.node
    WHERE NOT d.own AND {stays} GROUP BY d.node
"""

_DUPLICATES_OF_PAIRS = """
    SELECT times AS amount, 1 AS times FROM measured_duplicates WHERE owed
    UNION ALL SELECT 0, owed - repeated_pairs FROM measured_messages
"""

# The messages that a process is owed are those after its join: counted back from the end, without their product.
_MEAN_DUPLICATES = f"""
    SELECT floor(100 * CAST(COALESCE(d.times, 0) AS DOUBLE) / o.owed + 0.5) AS amount, 1 AS times
    FROM (SELECT node, of_message,
                 sum(of_message) OVER (ORDER BY time_us DESC, of_message DESC
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS owed
          FROM (SELECT joined_us AS time_us, 0 AS of_message, node FROM nodes WHERE ended_us IS NULL
                UNION ALL SELECT published_us, 1, CAST({NOBODY} AS BIGINT) FROM publications) AS moments) AS o
    LEFT JOIN (SELECT node, sum(times) AS times FROM measured_duplicates WHERE owed GROUP BY node) AS d
           ON o.node = d.node
    WHERE o.of_message = 0 AND o.owed > 0
"""
