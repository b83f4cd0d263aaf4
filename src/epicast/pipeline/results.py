"""The answers of many runs, gathered by Spark: as many rows as an experiment has points, however many runs it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from epicast.core.errors import EpicastError
from epicast.pipeline.confidence import Stat, from_moments
from epicast.pipeline.judged import EXAMPLES_MAX, Judged, example, judged_of

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Distribution:
    """Values and how often each came, over all seeds of a point."""

    values: Floats
    counts: Floats

    def quantile(self, share: float) -> float:
        """The smallest value that at least this share does not exceed."""
        total = np.cumsum(self.counts)
        return float(self.values[int(np.searchsorted(total, share * total[-1] - 1e-9))])

    def share_above(self, limit: float) -> float:
        return float(self.counts[self.values > limit].sum() / self.counts.sum())

    def mean(self) -> float:
        return float((self.values * self.counts).sum() / self.counts.sum())


class Results:
    """What the figures and checks of an experiment are made from. A point is chosen by the labels of its axes:
    `results.stat("depth_max", view="4")`."""

    def __init__(
        self,
        points: Sequence[dict[str, str]],
        stats: dict[tuple[int, str], Stat],
        distributions: dict[tuple[int, str], Distribution],
        series: dict[tuple[int, str], tuple[Floats, Floats]],
        judged: Sequence[Judged],
        unanalysed: Sequence[tuple[str, str]],
    ) -> None:
        self.points, self.judged, self.unanalysed = list(points), list(judged), list(unanalysed)
        self._stats, self._distributions, self._series = stats, distributions, series

    def find(self, **labels: object) -> list[int]:
        """The numbers of the points with these labels."""
        wanted = {axis: str(label) for axis, label in labels.items()}
        return [n for n, point in enumerate(self.points) if wanted.items() <= point.items()]

    def _one(self, labels: dict[str, object]) -> int:
        found = self.find(**labels)
        if len(found) != 1:
            raise EpicastError(f"{len(found)} points have the labels {labels}: expected one")
        return found[0]

    def stat(self, metric: str, **labels: object) -> Stat | None:
        """Over the seeds of one point; None if no run measured it."""
        return self._stats.get((self._one(labels), metric))

    def distribution(self, name: str, **labels: object) -> Distribution | None:
        return self._distributions.get((self._one(labels), name))

    def series(self, name: str, **labels: object) -> tuple[Floats, Floats] | None:
        """Times in seconds and the mean over the seeds."""
        return self._series.get((self._one(labels), name))


def gather(analysed: DataFrame, runs: DataFrame, points: Sequence[dict[str, str]]) -> Results:
    """`analysed` has a row per run of `analysis.SCHEMA`; `runs` tells the point of each."""
    joined = analysed.join(runs.select("run", "point"), on="run", how="inner")
    return Results(
        points,
        _stats(joined),
        _distributions(joined),
        _series(joined),
        judged(joined),
        [(row["run"], row["error"]) for row in joined.where("error IS NOT NULL").limit(20).collect()],
    )


def _stats(joined: DataFrame) -> dict[tuple[int, str], Stat]:
    """One row per point and metric."""
    each = joined.select("point", F.explode("metrics").alias("name", "value"))
    rows = each.groupBy("point", "name").agg(
        F.count("value").alias("n"),
        F.avg("value").alias("mean"),
        F.coalesce(F.stddev_samp("value"), F.lit(0.0)).alias("sd"),
        F.percentile("value", [0.0, 0.25, 0.5, 0.75, 1.0]).alias("five"),
    )
    return {
        (row["point"], row["name"]): from_moments(row["n"], row["mean"], row["sd"], tuple(row["five"]))
        for row in rows.collect()
    }


def _distributions(joined: DataFrame) -> dict[tuple[int, str], Distribution]:
    """One row per point, name and value."""
    each = joined.select("point", F.explode("histograms").alias("h")).select("point", "h.name", "h.value", "h.count")
    rows = each.groupBy("point", "name", "value").agg(F.sum("count").alias("count")).orderBy("value").collect()
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault((row["point"], row["name"]), []).append((row["value"], row["count"]))
    return {key: Distribution(*np.array(pairs, np.float64).T) for key, pairs in found.items()}


def _series(joined: DataFrame) -> dict[tuple[int, str], tuple[Floats, Floats]]:
    """One row per point, name and second."""
    each = joined.select("point", F.explode("series").alias("s")).select("point", "s.name", "s.time_s", "s.value")
    rows = each.groupBy("point", "name", "time_s").agg(F.avg("value").alias("value")).orderBy("time_s").collect()
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault((row["point"], row["name"]), []).append((row["time_s"], row["value"]))
    return {key: (np.array([t for t, _ in pairs]), np.array([v for _, v in pairs])) for key, pairs in found.items()}


def judged(analysed: DataFrame) -> list[Judged]:
    """One row per guarantee, in the order in which they are judged; two where only some runs promise it."""
    each = analysed.select("run", F.posexplode("verdicts").alias("at", "v")).select("run", "at", "v.*")
    violated = F.col("judged") & (F.col("violations") > 0)
    rows = (
        each.groupBy("at", "guarantee", "promised")
        .agg(
            F.sum(F.col("judged").cast("long")).alias("runs_judged"),
            F.sum(F.when(F.col("judged"), F.col("checked")).otherwise(0)).alias("checked"),
            F.sum(F.when(F.col("judged"), F.col("violations")).otherwise(0)).alias("violations"),
            F.sum(violated.cast("long")).alias("runs_broken"),
            F.count(F.lit(1)).alias("runs"),
            F.max("reason").alias("reason"),
            F.max(F.when(~F.col("judged"), F.col("reason"))).alias("unjudged"),
        )
        .orderBy("at", F.desc("promised"))
        .collect()
    )
    numbers = _numbers(each)
    return [
        judged_of(
            row.asDict(), _examples(each, row) if row["violations"] else (), numbers.get((row["at"], row["promised"]))
        )
        for row in rows
    ]


def _numbers(each: DataFrame) -> dict[tuple[int, bool], dict[str, int]]:
    """What checkers told apart, over all runs that they judged."""
    named = each.where("judged").select("at", "promised", F.explode("numbers").alias("name", "number"))
    found: dict[tuple[int, bool], dict[str, int]] = {}
    for row in named.groupBy("at", "promised", "name").agg(F.sum("number").alias("total")).orderBy("name").collect():
        found.setdefault((row["at"], row["promised"]), {})[row["name"]] = row["total"]
    return found


def _examples(each: DataFrame, of: Row) -> tuple[str, ...]:
    same = (F.col("guarantee") == of["guarantee"]) & (F.col("promised") == of["promised"])
    found = (
        each.where(F.col("judged") & same)
        .select("run", F.explode("findings").alias("f"))
        .select("run", "f.what", "f.rows")
        .limit(EXAMPLES_MAX)
        .collect()
    )
    return tuple(example(row["run"], row["what"], row["rows"]) for row in found)
