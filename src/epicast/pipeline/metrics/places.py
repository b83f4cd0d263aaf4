"""How far apart processes are, by the labels of their areas.

A label goes from the largest region to the smallest, as in `eu/paris`. Two processes are *near* if their labels are
equal, and *far* otherwise. The *distance* is the number of levels below what both labels begin with: 0 if they are
near, 1 for two areas of one region, 2 for areas of two regions. A process without a label is nowhere: nothing is said
about what it has to do with others.
"""

from __future__ import annotations

from epicast.pipeline.kernel import Kernel

LEVELS_MAX = 8  # that are compared: labels that agree in so many are taken to differ in the next
DISTANCE_MAX = 3  # that is told apart: this one stands for all that are larger too
DISTANCES = range(DISTANCE_MAX + 1)
WHERE = {"near": "the same area", "far": "another area"}


def define(kernel: Kernel) -> bool:
    """`measured_places` has one row per process with a label. False if there is none, and no such table."""
    if not kernel.query("SELECT count(*) AS places FROM nodes WHERE area <> ''").column(0)[0].as_py():
        return False
    parts = ", ".join(f"split_part(area, '/', {level}) AS part_{level}" for level in _levels())
    kernel.define(
        "measured_places",
        f"""
        SELECT node, area, joined_us, ended_us, length(area) - length(replace(area, '/', '')) + 1 AS levels, {parts}
        FROM nodes WHERE area <> ''
        """,
    )
    return True


def distance_sql(a: str, b: str) -> str:
    """Of two rows of `measured_places`."""
    deepest = f"greatest({a}.levels, {b}.levels)"
    cases = [f"WHEN {a}.part_{level} <> {b}.part_{level} THEN {deepest} - {level - 1}" for level in _levels()]
    distance = f"CASE WHEN {a}.area = {b}.area THEN 0 {' '.join(cases)} ELSE {deepest} - {LEVELS_MAX} END"
    return f"CAST(least({distance}, {DISTANCE_MAX}) AS INT)"


def there_sql(place: str, time_us: str) -> str:
    """The process is up then."""
    return f"{place}.joined_us <= {time_us} AND ({place}.ended_us IS NULL OR {place}.ended_us > {time_us})"


def at_distance(distance: int) -> str:
    return f"distance {distance}{' or more' if distance == DISTANCE_MAX else ''}"


def _levels() -> range:
    return range(1, LEVELS_MAX + 1)
