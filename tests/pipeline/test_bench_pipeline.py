"""`epicast bench pipeline`: its traces are sound, its ways give the same answers, and it judges what it measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from epicast.cli.benchmarks import pipeline_bench, pipeline_report, pipeline_worker
from epicast.cli.benchmarks.pipeline_answers import differences
from epicast.cli.benchmarks.pipeline_bench import analyses, run_job
from epicast.cli.benchmarks.pipeline_job import Job, Result
from epicast.cli.benchmarks.pipeline_processes import peak_bytes, processor_seconds
from epicast.cli.benchmarks.pipeline_trace import PROMISES, SOURCES, Shape, make_run
from epicast.cli.benchmarks.pipeline_verdict import TARGETS, ratios
from epicast.core.errors import EpicastError
from epicast.pipeline import analysis, tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.guarantees import judge
from epicast.pipeline.kernel import RunFacts
from epicast.trace.read import read_events, read_snapshots
from epicast.trace.run import RunFolder
from tests.unit.cli.shell import Shell

SMALL = Shape(nodes=24, messages=40)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("bench") / "run"
    make_run(path, SMALL, seed=1)
    return RunFolder.open(path).require_complete()


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


# The traces


def test_a_made_up_trace_keeps_its_promises(run: RunFolder) -> None:
    facts = RunFacts.of(run.info)
    with DuckKernel(run) as kernel:
        tables.define(kernel, facts)
        verdicts = {verdict.guarantee: verdict for verdict in judge(kernel, facts)}
    assert {name for name, verdict in verdicts.items() if verdict.promised} == set(PROMISES)
    for name in PROMISES:
        assert (verdicts[name].judged, verdicts[name].violations) == (True, 0), verdicts[name]
        assert verdicts[name].checked > 0
    assert verdicts["agreement"].checked == SMALL.nodes * SMALL.messages


def test_a_made_up_trace_has_all_sorts_of_rows_in_the_order_of_time(run: RunFolder) -> None:
    events = read_events(run.path)
    counts = {each["values"]: each["counts"] for each in events["kind"].combine_chunks().value_counts().to_pylist()}
    assert counts["publish"] == SMALL.messages
    assert counts["deliver"] == SMALL.messages * SMALL.nodes
    assert counts["join"] == SMALL.nodes
    assert {"send", "receive", "duplicate", "drop", "parent", "link_up"} <= counts.keys()
    assert counts["send"] == counts["receive"] + counts["duplicate"] + counts["drop"]
    assert (np.diff(events["time_us"].to_numpy()) >= 0).all()
    pictures = read_snapshots(run.path)
    assert len(set(pictures["flow"].to_pylist())) == 1 + SOURCES


def test_nobody_delivers_before_it_receives(run: RunFolder) -> None:
    with DuckKernel(run) as kernel:
        kernel.view("got", "SELECT node, source, seq, min(row) AS row FROM events WHERE kind = 'receive' GROUP BY ALL")
        sql = """
            SELECT count(*) AS n, count(*) FILTER (WHERE g.row < d.row) AS late
            FROM events AS d LEFT JOIN got AS g ON g.node = d.node AND g.source = d.source AND g.seq = d.seq
            WHERE d.kind = 'deliver' AND d.node <> d.source
        """
        (found,) = kernel.query(sql).to_pylist()
    assert found["n"] == found["late"] == SMALL.messages * (SMALL.nodes - 1)


def test_a_trace_has_about_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    for rows in (20_000, 120_000):
        made = make_run(tmp_path / str(rows), Shape.of_rows(rows), seed=1)
        assert rows <= made <= 1.1 * rows
    assert Shape.of_rows(50_000_000).nodes == 10_000


def test_the_seed_decides_what_is_in_it(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_run(tmp_path / name, SMALL, seed)
    a, b, c = (read_events(tmp_path / name) for name in "abc")
    assert a.equals(b)
    assert not a.equals(c)


# The ways


def test_spark_and_duckdb_give_the_same_answers_about_many_runs(spark: SparkSession, tmp_path: Path) -> None:
    """About a large run: see `test_slices.py`."""
    pipeline_worker.perform(Job("make", "many", str(tmp_path), runs=3, rows=20_000))
    by_duckdb, by_spark = analyses(str(tmp_path))[:2]
    runs = sorted(by_spark.runs_at.iterdir())
    found = pipeline_worker._by_spark(spark, by_spark.runs_at, by_spark.out, by_spark)
    pipeline_worker._keep([found], by_spark.answers)
    pipeline_worker._keep(
        [pipeline_worker._by_duckdb(run, by_duckdb.out, by_duckdb) for run in runs], by_duckdb.answers
    )
    assert found.num_rows == 3
    assert differences(by_duckdb.answers, by_spark.answers) == []
    for job in (by_spark, by_duckdb):
        assert len(list((job.out / "tables" / "sends").glob("run=*/*.parquet"))) == 3


def test_a_job_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    made = run_job(Job("make", "many", str(tmp_path), runs=2, rows=20_000))
    assert made.rows >= 40_000
    job = Job("duckdb", "many", str(tmp_path), 2)
    result = run_job(job)
    assert result.rows == made.rows
    assert result.seconds > 0
    assert pq.read_table(job.answers)["run"].to_pylist() == ["run-000", "run-001"]


def test_a_job_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(EpicastError, match=r"the measurement of many runs, DuckDB, 2 cores failed: .*"):
        run_job(Job("duckdb", "many", str(tmp_path), 2))


def test_another_answer_is_found(run: RunFolder, tmp_path: Path) -> None:
    with DuckKernel(run) as kernel:
        (row,) = analysis.analyse(kernel, run, "a").to_pylist()

    def save(name: str, change: Callable[[], object]) -> Path:
        change()
        pq.write_table(pa.Table.from_pylist([row], analysis.SCHEMA), tmp_path / name)
        return tmp_path / name

    one = save("one", lambda: None)
    last_digit = save("last digit", lambda: row["metrics"].__setitem__(0, (row["metrics"][0][0], _nudged(row))))
    assert differences(one, last_digit) == []
    other = save("other", lambda: row["verdicts"][0].update(violations=1))
    assert [line.partition(":")[0] for line in differences(one, other)] == ["run a, guarantee integrity"]
    shorter = save("shorter", row["histograms"].pop)
    assert len(differences(one, shorter)) == 2


def _nudged(row: dict[str, list[tuple[str, float]]]) -> float:
    return row["metrics"][0][1] * (1 + 1e-13)


# What it comes to


def samples(**seconds: float) -> dict[Job, list[Result]]:
    jobs = dict(zip(("duck", "two", "one", "duck_large", "large"), analyses("home"), strict=True))
    return {job: [Result(1000, seconds.get(name, 1.0), 2.0)] for name, job in jobs.items()}


def test_ratios_are_of_the_times_that_they_name() -> None:
    found = pipeline_report.as_dict(1000, 20, samples(duck=10, two=11, one=20, duck_large=30, large=90), [])
    assert found["ratios"] == {"many_vs_duckdb": 1.1, "large_vs_duckdb": 3.0, "two_cores_vs_one": 1.818}
    assert all(target["met"] for target in found["targets"].values())
    assert found["processor_ratios"] == dict.fromkeys(TARGETS, 1.0)
    slow = pipeline_report.as_dict(1000, 20, samples(duck=10, two=13, one=20, duck_large=30, large=121), [])
    assert not any(target["met"] for target in slow["targets"].values())
    assert ratios({}) == dict.fromkeys(TARGETS)


def test_the_middle_one_counts() -> None:
    results = [Result(seconds=seconds) for seconds in (3.0, 1.0, 2.0)]
    assert pipeline_report.middle(results).seconds == 2.0


def answer_at_once(job: Job) -> Result:
    if job.way == "make":
        return Result(100, 1.0)
    verdict = {"guarantee": "fifo", "violations": 0 if job.way == "duckdb" else len(os.environ.get("DIFFERS", ""))}
    content = [{"run": "a", "rows": 100, "verdicts": [verdict], "metrics": [], "histograms": [], "series": []}]
    pq.write_table(pa.Table.from_pylist(content, analysis.SCHEMA), job.answers)
    return Result(100, 2.0 if job.way == "spark" and job.cores == 1 else 1.0, 2.0, 3.0, 4.0, {"driver": 1}, 0.5)


def test_the_report_has_every_measurement_ratio_and_target(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_bench, "run_job", answer_at_once)
    answer = shell("bench", "pipeline", "--rows", 20_000, "--rounds", 2, "--json", "--check")
    assert answer.code == 0
    found = answer.json
    assert {"machine", "rows", "runs", "measurements", "ratios", "processor_ratios", "targets"} <= found.keys()
    assert {"duckdb", "pyspark", "cores", "load_average"} <= found["machine"].keys()
    assert found["answers_equal"] is True
    assert set(found["ratios"]) == set(found["targets"]) == set(TARGETS)
    assert [(each["way"], each["data"], each["cores"]) for each in found["measurements"]] == [
        ("make", "many", 1),
        ("make", "large", 1),
        ("duckdb", "many", 2),
        ("spark", "many", 2),
        ("spark", "many", 1),
        ("duckdb", "large", 2),
        ("spark", "large", 2),
    ]
    assert all(len(each["seconds_of_all"]) == (1 if each["way"] == "make" else 2) for each in found["measurements"])
    assert len(answer.err.splitlines()) == 2 + 2 * 5
    assert "All ways gave the same answers." in shell("bench", "pipeline", "-q").out


def test_a_missed_target_or_another_answer_fails_the_check(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_bench, "run_job", answer_at_once)
    monkeypatch.setenv("DIFFERS", "1")
    answer = shell("bench", "pipeline", "--check", "-q")
    assert answer.code == 1
    assert "guarantee fifo" in answer.out
    assert shell("bench", "pipeline", "-q").code == 0
    monkeypatch.delenv("DIFFERS")
    monkeypatch.setattr(pipeline_bench, "run_job", lambda job: Result(1, 1.0, 1.0) if job.way == "make" else slow(job))
    assert shell("bench", "pipeline", "--check", "-q").code == 1


def slow(job: Job) -> Result:
    answer_at_once(job)
    return Result(100, 1.0 if job.way == "duckdb" else 9.0)


def test_memory_and_processor_time_are_of_all_processes() -> None:
    found = peak_bytes()
    used = processor_seconds()
    if used is None:
        pytest.skip("no /proc here")
    assert found["driver"] > 10_000_000
    assert used > 0
