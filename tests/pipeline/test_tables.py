"""The tables of a run: their columns, what is in them, and what makes a trace unfit for them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from epicast.core.errors import EpicastError
from epicast.core.records import Level
from epicast.pipeline import tables
from epicast.pipeline.duck import DuckKernel
from epicast.pipeline.kernel import Kernel, RunFacts
from epicast.pipeline.spark_sql import SparkKernel
from epicast.sim.recorded import play_into
from epicast.sim.scenario import Scenario
from epicast.sim.world import World
from epicast.trace.run import RunFolder

SCENARIO = {
    "stack": "brisa",
    "nodes": 16,
    "warmup": "5s",
    "churn": "const churn 10% each 1s",
    "workload": {"messages": 8},
    "snapshot_interval": "1s",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("run") / "a"
    play_into(folder, World(Scenario.load(SCENARIO), 3, level=Level.FULL), ["epicast"])
    return RunFolder.open(folder)


def made(kernel: Kernel, run: RunFolder, folder: Path) -> dict[str, pa.Table]:
    facts = RunFacts.of(run.info)
    tables.define(kernel, facts)
    tables.write(kernel, facts, lambda name: folder / name / "run=a")
    return {table.name: pq.read_table(folder / table.name / "run=a", partitioning=None) for table in tables.TABLES}


def test_both_kernels_write_the_same_tables_in_their_schemas(
    spark: SparkSession, run: RunFolder, tmp_path: Path
) -> None:
    with DuckKernel(run) as small:
        of_duck = made(small, run, tmp_path / "duck")
    with SparkKernel(spark, run, tmp_path / "scratch") as large:
        of_spark = made(large, run, tmp_path / "spark")
    for table in tables.TABLES:
        assert of_duck[table.name].num_rows > 0, table.name
        for found in (of_duck[table.name], of_spark[table.name]):
            assert found.schema.names == table.schema.names
            assert found.schema.types == table.schema.types
        keys = [(key, "ascending") for key in table.key]
        assert of_duck[table.name].sort_by(keys).to_pylist() == of_spark[table.name].sort_by(keys).to_pylist()


def test_what_is_in_them_agrees_with_the_counters_of_the_run(run: RunFolder, tmp_path: Path) -> None:
    with DuckKernel(run) as kernel:
        found = made(kernel, run, tmp_path)
    counters = run.info.counters
    assert found["publications"].num_rows == counters["messages"] == 8
    assert found["deliveries"].num_rows == counters["deliveries"]
    assert found["sends"].num_rows == sum(counters["messages_by_layer"].values())
    assert min(found["deliveries"]["latency_us"].to_pylist()) >= 0
    lost = [row for row in found["parents"].to_pylist() if row["parent"] == -1]
    assert len(lost) == counters["repairs"]["parents_lost"] > 0
    assert all(row["previous"] >= 0 for row in lost)
    assert set(found["views"]["overlay"].to_pylist()) == {"active", "tree"}


def test_a_trace_of_deliveries_has_no_tables_of_messages(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    play_into(folder, World(Scenario.load({**SCENARIO, "churn": ""}), 3), ["epicast"])
    facts = RunFacts.of(RunFolder.open(folder).info)
    assert [table.name for table in tables.tables_of(facts)] == ["publications", "deliveries", "parents", "views"]


def rewritten(run: RunFolder, folder: Path, change: object) -> RunFolder:
    """The run with other events."""
    import shutil

    copy = RunFolder.open(shutil.copytree(run.path, folder))
    (part,) = copy.event_files()
    pq.write_table(change(pq.read_table(part, partitioning=None)), part)  # type: ignore[operator]
    return copy


def _without_a_row(events: pa.Table) -> pa.Table:
    return pa.concat_tables([events.slice(0, 50), events.slice(51)])


def _with_a_row_twice(events: pa.Table) -> pa.Table:
    return pa.concat_tables([events.slice(0, 50), events.slice(49, 1), events.slice(51)])


def _published_twice(events: pa.Table) -> pa.Table:
    rows = events.to_pylist()
    first = next(row for row in rows if row["kind"] == "publish")
    other = next(row for row in rows if row["kind"] == "send")
    rows[other["row"]] = {**first, "row": other["row"]}
    return pa.Table.from_pylist(rows, events.schema)


def _its_own_parent(events: pa.Table) -> pa.Table:
    rows = events.to_pylist()
    change = next(row for row in rows if row["kind"] == "parent")
    change["peer"] = change["node"]
    return pa.Table.from_pylist(rows, events.schema)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_a_row, "the trace is damaged: it holds"),
        (_with_a_row_twice, "the trace is damaged: it holds"),
        (_published_twice, r"in its table publications 1 keys \(source, seq\) come more than once"),
        (_its_own_parent, "in its table parents 1 rows contradict themselves"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(run: RunFolder, tmp_path: Path, change: object, said: str) -> None:
    damaged = rewritten(run, tmp_path / "a", change)
    with DuckKernel(damaged) as kernel, pytest.raises(EpicastError, match=said):
        tables.define(kernel, RunFacts.of(damaged.info))
