"""Where the links of the overlay lead: to processes near or far (see `places.py`), in every picture.

A link counts if both its ends are up and have a label. Who has whom in its view may differ from who is in whose, so the
numbers of links from a process and to it are told apart.
"""

from __future__ import annotations

from epicast.pipeline.kernel import Kernel
from epicast.pipeline.metrics.distributions import FEW, Distribution
from epicast.pipeline.metrics.measures import Measures, thinned
from epicast.pipeline.metrics.places import DISTANCES, WHERE, at_distance, distance_sql, there_sql
from epicast.pipeline.metrics.scope import Scope

NAMES = {
    f"overlay_degree_mean_at_{distance}": (
        f"mean number of links of a process to others at {at_distance(distance)}, in the last picture"
    )
    for distance in DISTANCES
}
SERIES = {
    f"overlay_{where}_degree_mean": f"mean number of links of a process to others of {words}, in each picture"
    for where, words in WHERE.items()
}
DISTRIBUTIONS = tuple(
    Distribution(
        f"{where}_{way}degree",
        f"links {'to' if way else 'of'} a process {'from' if way else 'to'} others of {words} in the last picture",
        statistics=(*FEW, "cv"),
    )
    for where, words in WHERE.items()
    for way in ("", "in_")
)


def define(kernel: Kernel) -> bool:
    """`measured_ties` has one row per link, `measured_pictures` one per picture. False without any picture."""
    kernel.define(
        "measured_ties",
        f"""
        SELECT s.time_us, s.node, s.peer, {distance_sql("a", "b")} AS distance
        FROM (SELECT DISTINCT time_us, node, peer FROM snapshots WHERE overlay = 'active' AND node <> peer) AS s
        JOIN measured_places AS a ON s.node = a.node JOIN measured_places AS b ON s.peer = b.node
        WHERE {there_sql("a", "s.time_us")} AND {there_sql("b", "s.time_us")}
        """,
    )
    kernel.define(
        "measured_pictures",
        f"""
        SELECT s.time_us, count(*) AS processes
        FROM (SELECT DISTINCT time_us FROM snapshots WHERE overlay = 'active') AS s
        JOIN measured_places AS p ON {there_sql("p", "s.time_us")} GROUP BY s.time_us
        """,
    )
    return bool(kernel.query("SELECT count(*) AS pictures FROM measured_pictures").column(0)[0].as_py())


_LINKS = """
    SELECT p.time_us, p.processes, t.distance, count(*) AS links
    FROM measured_pictures AS p JOIN measured_ties AS t ON p.time_us = t.time_us
    GROUP BY p.time_us, p.processes, t.distance
"""


def measure(kernel: Kernel, scope: Scope) -> Measures:
    processes = {
        row["time_us"]: row["processes"] for row in kernel.query("SELECT * FROM measured_pictures").to_pylist()
    }
    links = dict.fromkeys(((time_us, distance) for time_us in processes for distance in DISTANCES), 0)
    for row in kernel.query(_LINKS).to_pylist():
        links[row["time_us"], row["distance"]] = row["links"]
    last_us = max(processes)
    farthest = max((distance for (_, distance), count in links.items() if count), default=0)
    metrics = {
        f"overlay_degree_mean_at_{distance}": links[last_us, distance] / processes[last_us]
        for distance in range(farthest + 1)
    }
    series = []
    for where in WHERE:
        distances = [distance for distance in DISTANCES if (distance > 0) == (where == "far")]
        points = [
            ((time_us - scope.zero_us) / 1e6, sum(links[time_us, distance] for distance in distances) / up)
            for time_us, up in sorted(processes.items())
        ]
        series += [(f"overlay_{where}_degree_mean", at, value) for at, value in thinned(points)]
    return Measures(metrics, series=series)


def counts() -> dict[Distribution, str]:
    """Of the last picture; processes without any such link are counted too."""
    found = {}
    for each in DISTRIBUTIONS:
        end = "peer" if "_in_" in each.name else "node"
        found[each] = f"""
            SELECT count(t.{end}) AS amount, 1 AS times
            FROM (SELECT max(time_us) AS time_us FROM measured_pictures) AS last
            JOIN measured_places AS p ON {there_sql("p", "last.time_us")}
            LEFT JOIN measured_ties AS t ON t.{end} = p.node AND t.time_us = last.time_us
                      AND t.distance {"=" if each.name.startswith("near") else ">"} 0
            GROUP BY p.node
        """
    return found
