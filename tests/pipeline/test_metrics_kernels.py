"""One SQL text, two kernels, the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from epicast.core.records import Level
from epicast.pipeline.kernel import EXTRAS
from epicast.pipeline.spark_sql import SparkKernel
from tests.pipeline.measured import measured, measured_by, simulated

RUNS: dict[str, dict[str, Any]] = {
    "two-trees-under-churn": {
        "nodes": 40,
        "latency": 'areas 4 1ms "areas 2 10ms 40ms"',
        "churn": "const churn 10% each 1s",
        "snapshot_interval": "900ms",
        "network": {"loss": 0.01},
        "workload": {"messages": 20, "sources": 2},
    },
    "deliveries-of-a-flood": {
        "stack": "flood",
        "level": Level.DELIVERIES,
        "fault": [{"kind": "crash", "at": "1s", "fraction": 0.3}],
    },
    "order-with-holes": {
        "stack": "epto",
        "nodes": 20,
        "level": Level.DELIVERIES,
        "overrides": {"dissemination": {"fanout": 2, "rounds": 3}},
        "network": {"transport": "datagram"},
        "workload": {"messages": 20, "rate": 40, "sources": 20},
    },
}

TELL_HOLES = ("flood", "epto")  # what is missing there is not sent again


@pytest.mark.parametrize("scenario", RUNS.values(), ids=RUNS.keys())
def test_both_kernels_measure_the_same(spark: SparkSession, scenario: dict[str, Any], tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", **scenario)
    ours = measured(run, *EXTRAS)
    with SparkKernel(spark, run, tmp_path / "scratch") as kernel:
        theirs = measured_by(kernel, run, *EXTRAS)
    assert theirs.metrics == pytest.approx(ours.metrics, rel=1e-9)
    assert theirs.histograms == ours.histograms
    assert theirs.series == ours.series
    assert len(ours.metrics) > (150 if run.info.trace_level == Level.FULL else 50)
    assert ours.histograms
    assert ours.series
    assert "drop_uniform_50_weak_share" in ours.metrics
    assert ("far_copies_mean" in ours.metrics) == ("latency" in scenario)
    assert (ours.metrics["processes_with_holes"] > 0) == (scenario.get("stack") in TELL_HOLES)
