"""Whatever the rows and however they are batched: they come back, and the digest tells exactly whether they differ."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from epicast.core.records import Kind, Level
from epicast.trace.batch import Batch, Names
from epicast.trace.digest import TraceDigest
from epicast.trace.writer import TraceWriter
from tests.unit.trace.rows import Row, as_rows, as_stored, cut, some_names

NAMES = some_names()

# Few different values, so that neighbours often agree, and the extremes.
int64s = st.sampled_from([-1, 0, 1, 2**31, 2**63 - 1, -(2**63)])
int32s = st.sampled_from([0, 1, 2**31 - 1, -(2**31)])
codes = st.sampled_from(range(len(NAMES)))
kinds = st.sampled_from([int(kind) for kind in Kind])
rows = st.lists(
    st.tuples(int64s, kinds, int64s, int64s, int64s, int64s, int32s, int32s, codes, codes, codes, int32s), max_size=40
)


@st.composite
def batched(draw: st.DrawFn) -> tuple[list[Row], list[Batch]]:
    drawn = draw(rows)
    places = draw(st.lists(st.integers(0, len(drawn)), max_size=5))
    return drawn, cut(drawn, *places)


def digest(batches: list[Batch], names: Names = NAMES) -> str:
    total = TraceDigest(names)
    for batch in batches:
        total.update(batch)
    return total.hexdigest()


@settings(max_examples=50)
@given(batched(), st.integers(1, 20), st.integers(1, 40))
def test_rows_come_back(trace: tuple[list[Row], list[Batch]], group_rows: int, part_rows: int) -> None:
    drawn, batches = trace
    with TemporaryDirectory() as folder:
        with TraceWriter(Path(folder), Level.FULL, NAMES, group_rows=group_rows, part_rows=part_rows) as writer:
            for batch in batches:
                writer.write(batch)
        writer.publish()
        tables = [pq.read_table(part) for part in sorted(Path(folder).glob("*.parquet"))]
    assert as_rows(pa.concat_tables(tables)) == as_stored(drawn, NAMES)
    assert writer.rows == len(drawn)


@given(batched())
def test_the_digest_does_not_depend_on_batches(trace: tuple[list[Row], list[Batch]]) -> None:
    drawn, batches = trace
    assert digest(batches) == digest(cut(drawn))


@given(rows, rows)
def test_digests_are_equal_when_the_rows_are(one: list[Row], other: list[Row]) -> None:
    assert (digest(cut(one)) == digest(cut(other))) == (one == other)


@given(rows.filter(bool), st.data())
def test_one_changed_cell_changes_the_digest(drawn: list[Row], data: st.DataObject) -> None:
    place, column = data.draw(st.integers(0, len(drawn) - 1)), data.draw(st.integers(0, 11))
    row = drawn[place]
    value = row[column] + (-1 if row[column] in (len(NAMES) - 1, 2**31 - 1, 2**63 - 1) else 1)
    changed = [*drawn[:place], (*row[:column], value, *row[column + 1 :]), *drawn[place + 1 :]]
    assert digest(cut(changed)) != digest(cut(drawn))


@given(rows, st.permutations(["flood", "app", "loss", "prices", "unused"]))
def test_the_digest_does_not_depend_on_the_order_of_interning(drawn: list[Row], texts: list[str]) -> None:
    other = Names()
    for text in texts:
        other.code(text)
    renamed = [(*row[:8], *(other.code(NAMES[code]) for code in row[8:11]), row[11]) for row in drawn]
    assert digest(cut(renamed), other) == digest(cut(drawn))
