"""Parents lost and found again, from the rows that trees write down.

A parent is lost when a process writes that it has none from now on. It is an *orphan* then, if it had one before: in a
tree that is the same. Rates are of the window.
"""

from __future__ import annotations

from epicast.core.ids import NOBODY
from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.distributions import Distribution
from epicast.pipeline.metrics.measures import ratio
from epicast.pipeline.metrics.scope import Scope, per_minute

NAMES = {
    "parent_changes": "times that a process took a parent, the first included",
    "parents_lost": "times that a process lost its parent",
    "parents_lost_per_minute": "parents lost in a minute of the window",
    "orphans": "times that a process that had a parent was left without any",
    "orphans_per_minute": "orphans in a minute of the window",
    "soft_repairs": "parents found by asking one neighbour that is known to be attached",
    "hard_repairs": "parents found by asking everybody",
    "soft_repair_share": "share of the repairs that were soft",
    "hard_repair_share": "share of the repairs that were hard",
}

DELAY = Distribution("repair_delay_ms", "from losing a parent to the next one, in ms", unit=1000)
SOFT_DELAY = Distribution("soft_repair_delay_ms", "from losing a parent to a soft repair, in ms", unit=1000)
HARD_DELAY = Distribution("hard_repair_delay_ms", "from losing a parent to a hard repair, in ms", unit=1000)
DISTRIBUTIONS = (DELAY, SOFT_DELAY, HARD_DELAY)


def define(kernel: Kernel) -> None:
    """`measured_delays` has one row per parent that was lost and followed by another. The row of the repair is
    written in the same moment as that of the new parent; without one, `sort` is null."""
    kernel.define(
        "measured_delays",
        f"""
        SELECT p.until_us - p.time_us AS delay_us, max(r.detail) AS sort
        FROM (SELECT * FROM parents WHERE parent = {NOBODY} AND until_us IS NOT NULL) AS p
        LEFT JOIN (SELECT time_us, node, source, seq, detail FROM marks WHERE kind = 'repair') AS r
               ON p.node = r.node AND p.source = r.source AND p.flow = r.seq AND p.until_us = r.time_us
        GROUP BY p.row, p.until_us, p.time_us
        """,
    )


def counts() -> dict[Distribution, str]:
    return {DELAY: _delays("true"), SOFT_DELAY: _delays("sort = 'soft'"), HARD_DELAY: _delays("sort = 'hard'")}


def _delays(condition: str) -> str:
    return f"SELECT delay_us AS amount, 1 AS times FROM measured_delays WHERE {condition}"


def metrics(kernel: Kernel, scope: Scope) -> dict[str, float]:
    """Nothing for a run whose processes never spoke of parents."""
    if not scope.count("parent"):
        return {}
    row = kernel.query(_losses_sql(scope)).to_pylist()[0]
    soft, hard = scope.count("repair", "soft"), scope.count("repair", "hard")
    return {
        "parent_changes": row["taken"],
        "parents_lost": row["lost"],
        "orphans": row["orphans"],
        **per_minute("parents_lost", row["lost_in_window"], scope),
        **per_minute("orphans", row["orphans_in_window"], scope),
        "soft_repairs": soft,
        "hard_repairs": hard,
        **ratio("soft_repair_share", soft, soft + hard),
        **ratio("hard_repair_share", hard, soft + hard),
    }


def _losses_sql(scope: Scope) -> str:
    inside = f"time_us BETWEEN {scope.window_us[0]} AND {scope.window_us[1]}"
    lost, orphan = f"parent = {NOBODY}", f"parent = {NOBODY} AND previous <> {NOBODY}"
    return f"""
        SELECT count(*) FILTER (WHERE parent <> {NOBODY} AND parent <> previous) AS taken,
               count(*) FILTER (WHERE {lost}) AS lost,
               count(*) FILTER (WHERE {lost} AND {inside}) AS lost_in_window,
               count(*) FILTER (WHERE {orphan}) AS orphans,
               count(*) FILTER (WHERE {orphan} AND {inside}) AS orphans_in_window
        FROM parents
    """
