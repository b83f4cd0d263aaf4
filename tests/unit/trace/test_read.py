from pathlib import Path

import pytest

from epicast.core.errors import EpicastError
from epicast.trace.read import read_events, read_nodes, read_snapshots
from epicast.trace.schema import EVENTS, NODES, SNAPSHOTS
from tests.unit.trace.rows import as_rows, as_stored, some_names, some_rows
from tests.unit.trace.runs import ROWS, complete, fill, start


def test_all_tables_come_back(tmp_path: Path) -> None:
    complete(tmp_path)
    assert as_rows(read_events(tmp_path)) == as_stored(some_rows(ROWS), some_names())
    edges = [(1, 0, 250), (2, -1, -1)]
    assert [tuple(row.values()) for row in as_rows(read_snapshots(tmp_path))] == [
        (time_us, "tree", "news", *edge) for time_us in (5, 9) for edge in edges
    ]
    assert [tuple(row.values()) for row in as_rows(read_nodes(tmp_path))] == [
        (0, "a:1", "eu", 0, None, ""),
        (1, "b:1", "us", 5, 9, "crash"),
    ]


def test_the_schemas_are_the_ones_of_the_trace(tmp_path: Path) -> None:
    complete(tmp_path)
    for table, schema in (
        (read_events(tmp_path), EVENTS),
        (read_snapshots(tmp_path), SNAPSHOTS),
        (read_nodes(tmp_path), NODES),
    ):
        assert table.schema.equals(schema)
        assert table.schema.metadata == schema.metadata


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    complete(tmp_path)
    table = read_events(tmp_path, ["node", "kind"])
    assert table.column_names == ["node", "kind"]
    assert table.to_pylist()[:2] == [{"node": 0, "kind": "send"}, {"node": 1, "kind": "receive"}]


def test_an_unknown_column_is_one_line(tmp_path: Path) -> None:
    complete(tmp_path)
    with pytest.raises(EpicastError, match="no column nodes: there are row, time_us, kind"):
        read_events(tmp_path, ["nodes"])


def test_a_folder_name_does_not_become_a_column(tmp_path: Path) -> None:
    complete(tmp_path / "seed=1")
    assert read_events(tmp_path / "seed=1").column_names == EVENTS.names


def test_tables_that_were_never_written_are_empty(tmp_path: Path) -> None:
    start(tmp_path).finish({})
    assert [len(table) for table in (read_events(tmp_path), read_snapshots(tmp_path), read_nodes(tmp_path))] == [
        0,
        0,
        0,
    ]


def test_a_failed_run_shows_what_was_saved(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    run.fail("enough")
    assert len(read_events(tmp_path)) == ROWS


def test_a_damaged_table_is_one_line(tmp_path: Path) -> None:
    complete(tmp_path)
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(EpicastError, match=r"^cannot read the trace: .+$"):
        read_nodes(tmp_path)


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EpicastError, match="is not a run folder"):
        read_events(tmp_path)
