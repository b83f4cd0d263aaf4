from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epicast.core.errors import EpicastError
from epicast.core.records import Kind, Level
from epicast.trace.schema import EVENTS
from epicast.trace.writer import TraceWriter
from tests.unit.trace.rows import Row, as_rows, as_stored, batch, cut, some_names, some_rows

NAMES = some_names()


def writer(folder: Path, level: Level = Level.FULL, **sizes: int) -> TraceWriter:
    return TraceWriter(folder, level, NAMES, **{"group_rows": 16, "part_rows": 48} | sizes)


def write(folder: Path, *batches: Any) -> None:
    with writer(folder) as trace:
        for each in batches:
            trace.write(each)
    trace.publish()


def stored(folder: Path) -> list[dict[str, Any]]:
    return as_rows(pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet"))))


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = some_rows(100)
    write(tmp_path, *cut(rows, 10, 11, 60))
    assert stored(tmp_path) == as_stored(rows, NAMES)


def test_the_file_has_the_one_schema(tmp_path: Path) -> None:
    write(tmp_path, batch(some_rows(10)))
    schema = pq.read_schema(tmp_path / "part-00000.parquet")
    assert schema.equals(EVENTS)
    assert schema.metadata == EVENTS.metadata


def test_a_new_part_begins_when_one_is_full(tmp_path: Path) -> None:
    write(tmp_path, batch(some_rows(100)))
    assert [pq.read_metadata(tmp_path / name).num_rows for name in names_in(tmp_path)] == [48, 48, 4]


def test_rows_that_fill_a_part_leave_no_empty_one_behind(tmp_path: Path) -> None:
    write(tmp_path, batch(some_rows(48)))
    assert names_in(tmp_path) == ["part-00000.parquet"]


def test_a_run_without_rows_has_a_part_with_the_schema(tmp_path: Path) -> None:
    write(tmp_path, batch([]))
    assert pq.read_table(tmp_path / "part-00000.parquet").equals(EVENTS.empty_table())


def test_the_same_rows_give_the_same_files_however_they_were_batched(tmp_path: Path) -> None:
    rows = some_rows(100)
    for name, places in (("a", ()), ("b", (1, 2, 50)), ("c", range(0, 100, 7))):
        (tmp_path / name).mkdir()
        write(tmp_path / name, *cut(rows, *places))
    contents = [[file.read_bytes() for file in sorted((tmp_path / name).iterdir())] for name in "abc"]
    assert contents[0] == contents[1] == contents[2]


def test_the_driver_may_use_its_buffers_again(tmp_path: Path) -> None:
    rows = some_rows(100)
    reused = batch(rows)
    with writer(tmp_path) as trace:
        trace.write(reused)
        reused.node.fill(99)
        reused.kind.fill(99)
    trace.publish()
    assert stored(tmp_path) == as_stored(rows, NAMES)


def test_texts_that_come_up_on_the_way_are_stored(tmp_path: Path) -> None:
    names = some_names()
    with TraceWriter(tmp_path, Level.FULL, names, group_rows=4) as trace:
        trace.write(batch(some_rows(6)))
        late = [(*row[:10], names.code("late"), row[11]) for row in some_rows(6)]
        trace.write(batch(late))
    trace.publish()
    assert [row["topic"] for row in stored(tmp_path)] == [""] * 6 + ["late"] * 6


def test_a_row_group_names_only_the_texts_that_it_uses(tmp_path: Path) -> None:
    write(tmp_path, batch([row for row in some_rows(100) if row[8] == 1][:10]))
    layer = pq.read_table(tmp_path / "part-00000.parquet").column("layer").chunk(0)
    assert layer.dictionary.to_pylist() == ["flood"]


def test_parts_have_temporary_names_until_they_are_published(tmp_path: Path) -> None:
    trace = writer(tmp_path)
    trace.write(batch(some_rows(100)))
    trace.close()
    assert names_in(tmp_path) == [f"part-0000{n}.parquet.tmp" for n in range(3)]
    trace.publish()
    trace.publish()
    assert names_in(tmp_path) == [f"part-0000{n}.parquet" for n in range(3)]


def test_abort_keeps_closed_parts_and_removes_the_open_one(tmp_path: Path) -> None:
    trace = writer(tmp_path)
    trace.write(batch(some_rows(48)))
    while not trace.parts:
        pass  # the thread is about to close it
    trace.write(batch(some_rows(40)))
    trace.abort()
    trace.publish()
    assert names_in(tmp_path) == ["part-00000.parquet"]


def test_an_exception_aborts(tmp_path: Path) -> None:
    def break_off() -> None:
        with writer(tmp_path) as trace:
            trace.write(batch(some_rows(20)))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        break_off()
    assert names_in(tmp_path) == []


def write_on(trace: TraceWriter) -> None:
    rows = batch(some_rows(1000))
    while True:
        trace.write(rows)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_reported_in_one_line_on_a_later_call(tmp_path: Path) -> None:
    (tmp_path / "part-00000.parquet.tmp").symlink_to("/dev/full")
    trace = writer(tmp_path)
    with pytest.raises(EpicastError, match=r"^cannot write the trace in \S+: No space left on device$"):
        write_on(trace)
    with pytest.raises(EpicastError, match="No space left"):
        trace.close()
    assert names_in(tmp_path) == []


def test_a_failure_is_reported_before_the_next_group_is_full(tmp_path: Path) -> None:
    trace = writer(tmp_path / "gone")
    trace.write(batch(some_rows(16)))
    with pytest.raises(EpicastError, match="No such file or directory"):
        write_nothing_often(trace)
    trace.abort()


def write_nothing_often(trace: TraceWriter) -> None:
    for _ in range(1_000_000):
        trace.write(batch([]))


def test_a_folder_that_is_gone_is_reported_on_close(tmp_path: Path) -> None:
    trace = writer(tmp_path / "gone")
    trace.write(batch(some_rows(3)))
    with pytest.raises(EpicastError, match="No such file or directory"):
        trace.close()


@pytest.mark.parametrize(
    ("level", "kind", "fine"),
    [
        (Level.FULL, Kind.SEND, True),
        (Level.DELIVERIES, Kind.LINK_DOWN, False),
        (Level.DELIVERIES, Kind.PUBLISH, True),
        (Level.OFF, max(Kind), False),
        (Level.FULL, 255, False),
    ],
)
def test_a_row_that_its_level_does_not_keep_is_a_mistake(tmp_path: Path, level: Level, kind: int, fine: bool) -> None:
    trace = writer(tmp_path, level)
    trace.write(batch([changed(some_rows(1)[0], 1, int(kind))]))
    if fine:
        trace.close()
    else:
        with pytest.raises(EpicastError, match="kind"):
            trace.close()


@pytest.mark.parametrize("code", [-1, 5])
def test_a_code_without_a_text_is_a_mistake(tmp_path: Path, code: int) -> None:
    trace = writer(tmp_path)
    trace.write(batch([changed(some_rows(1)[0], 9, code)]))
    with pytest.raises(EpicastError, match=f"no text has the code {code}"):
        trace.close()


def changed(row: Row, column: int, value: int) -> Row:
    return (*row[:column], value, *row[column + 1 :])


def encodings(file: Path) -> dict[str, set[str]]:
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    return {column.path_in_schema: set(column.encodings) for column in columns}


def test_only_encodings_that_spark_reads_in_batches_are_used(tmp_path: Path) -> None:
    write(tmp_path, batch(some_rows(40)))
    used = encodings(tmp_path / "part-00000.parquet")
    assert set().union(*used.values()) <= {"PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"}
    assert "DELTA_BINARY_PACKED" in used["node"]
    assert "RLE_DICTIONARY" in used["kind"]


@pytest.mark.parametrize("column", [2, 3, 4])
@pytest.mark.parametrize("id_", [2**62, -(2**63)])
def test_ids_that_are_hashes_get_a_dictionary(tmp_path: Path, column: int, id_: int) -> None:
    rows = [changed(row, column, id_) for row in some_rows(40)]
    write(tmp_path, batch(rows))
    assert "RLE_DICTIONARY" in encodings(tmp_path / "part-00000.parquet")["node"]
    assert stored(tmp_path) == as_stored(rows, NAMES)
