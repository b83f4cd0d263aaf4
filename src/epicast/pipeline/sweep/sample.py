"""One tree out of a sweep, for drawing."""

from __future__ import annotations

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from epicast.pipeline.layout import Layout

EDGES_MAX = 5_000
SEEDS_MAX = 100


def sample_tree(runs: DataFrame, layout: Layout, point: int) -> list[tuple[int, int]]:
    """From child to parent: the first flow's tree at the end of the first run of a point that has tables."""
    first = runs.where(f"point = {point}").orderBy("seed").limit(SEEDS_MAX).collect()
    folder = next((folder for row in first if (folder := layout.table("views", row["run"])).exists()), None)
    if folder is None:
        return []
    table = pq.read_table(folder, filters=[("overlay", "=", "tree")], partitioning=None)
    rows = table.sort_by([("time_us", "descending"), ("flow", "ascending")]).to_pylist()
    last = [row for row in rows if (row["time_us"], row["flow"]) == (rows[0]["time_us"], rows[0]["flow"])]
    return [(row["node"], row["peer"]) for row in last[:EDGES_MAX]]
