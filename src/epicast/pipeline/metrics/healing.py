"""How a run comes back from the failure of many processes at one instant.

There is a *mass failure* if a tenth of the processes that were up crashed in the same microsecond; the largest one
counts. A survivor is *back* when it delivers the first message that was published after the failure. Some never are:
they are not in the distribution, but their deliveries are missing.
"""

from __future__ import annotations

from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.distributions import Distribution
from epicast.pipeline.metrics.measures import ratio

MASS = 0.1

NAMES = {
    "delivery_ratio_second_half": (
        "share of the owed pairs that were delivered, of the later half of the messages of each source and topic"
    ),
    "survivors_back_share": (
        "share of the processes up at a mass failure and to the end, publishers of later messages left out, that "
        "delivered a message published after it"
    ),
}

CUT_OFF = Distribution(
    "cut_off_ms",
    "from a mass failure to the first delivery of another's message that was published after it, at a survivor, in ms",
    unit=1000,
)
DISTRIBUTIONS = (CUT_OFF,)


def define(kernel: Kernel) -> bool:
    """`measured_survivors` has one row per process that was up at a mass failure and to the end. False if there was
    no such failure."""
    failure_us = mass_failure_us(kernel)
    if failure_us is None:
        return False
    kernel.define(
        "measured_survivors",
        f"""
        SELECT n.node, min(d.time_us) - {failure_us} AS cut_off_us
        FROM nodes AS n
        LEFT JOIN (SELECT node, time_us FROM deliveries WHERE NOT own AND published_us > {failure_us}) AS d
               ON n.node = d.node
        WHERE n.ended_us IS NULL AND n.joined_us <= {failure_us}
              AND NOT EXISTS (SELECT 1 FROM publications AS p WHERE p.source = n.node AND p.published_us > {failure_us})
        GROUP BY n.node
        """,
    )
    return True


def mass_failure_us(kernel: Kernel) -> int | None:
    rows = kernel.query(_CRASHES).to_pylist()
    if not rows:
        return None
    time_us: int = rows[0]["time_us"]
    there = f"joined_us <= {time_us} AND (ended_us IS NULL OR ended_us >= {time_us})"
    up = kernel.query(f"SELECT count(*) AS up FROM nodes WHERE {there}").column(0)[0].as_py()
    return time_us if rows[0]["crashed"] >= MASS * up else None


_CRASHES = """
    SELECT ended_us AS time_us, count(*) AS crashed FROM nodes WHERE how = 'crash'
    GROUP BY ended_us ORDER BY crashed DESC, time_us LIMIT 1
"""

_SECOND_HALF = """
    SELECT CAST(sum(reached) AS BIGINT) AS reached, CAST(sum(owed) AS BIGINT) AS owed
    FROM measured_messages WHERE 2 * place > places
"""

_BACK = "SELECT count(*) AS survivors, count(cut_off_us) AS back FROM measured_survivors"


def metrics(kernel: Kernel, *, failed: bool) -> dict[str, float]:
    """`measured_messages` is known (see `delivery.py`)."""
    row = kernel.query(_SECOND_HALF).to_pylist()[0]
    found = ratio("delivery_ratio_second_half", row["reached"] or 0, row["owed"] or 0)
    if failed:
        row = kernel.query(_BACK).to_pylist()[0]
        found |= ratio("survivors_back_share", row["back"], row["survivors"])
    return found


def counts() -> dict[Distribution, str]:
    return {CUT_OFF: "SELECT cut_off_us AS amount, count(*) AS times FROM measured_survivors GROUP BY cut_off_us"}
