import numpy as np
import pytest

from epicast.trace.batch import DTYPES, TEXTS, Batch, Names
from epicast.trace.digest import TraceDigest
from tests.unit.trace.rows import Row, batch, cut, some_names, some_rows

ROWS = some_rows(200)
NAMES = some_names()


def digest(*batches: Batch, names: Names = NAMES) -> str:
    total = TraceDigest(names)
    for each in batches:
        total.update(each)
    return total.hexdigest()


def changed(rows: list[Row], row: int, column: int, value: int) -> list[Row]:
    new = list(rows[row])
    assert new[column] != value
    new[column] = value
    return [*rows[:row], tuple(new), *rows[row + 1 :]]


@pytest.mark.parametrize("places", [(1,), (199,), (0, 0), (200,), (7, 8, 9), range(0, 200, 3), range(200)])
def test_batch_boundaries_leave_no_mark(places: tuple[int, ...]) -> None:
    assert digest(*cut(ROWS, *places)) == digest(batch(ROWS))


@pytest.mark.parametrize("column", range(len(DTYPES)))
@pytest.mark.parametrize("row", [0, 1, 99, 198, 199])
def test_any_cell_counts(row: int, column: int) -> None:
    values = {r[column] for r in ROWS} - {ROWS[row][column]}
    for value in (min(values), max(values)):
        assert digest(batch(changed(ROWS, row, column, value))) != digest(batch(ROWS))


def test_the_upper_half_of_a_number_counts() -> None:
    for name in ("time_us", "node", "peer", "source", "seq"):
        column = list(DTYPES).index(name)
        assert digest(batch(changed(ROWS, 5, column, ROWS[5][column] + 2**40))) != digest(batch(ROWS))


def test_the_order_of_rows_counts() -> None:
    assert digest(batch(ROWS[::-1])) != digest(batch(ROWS))


def test_missing_and_repeated_rows_count() -> None:
    same = [ROWS[0]] * 3
    assert len({digest(batch(same[:count])) for count in range(4)}) == 4


def test_values_that_change_places_between_columns_count() -> None:
    a, b = list(DTYPES).index("source"), list(DTYPES).index("seq")
    swapped = [tuple(row[{a: b, b: a}.get(i, i)] for i in range(len(row))) for row in ROWS]
    assert digest(batch(swapped)) != digest(batch(ROWS))


def test_the_order_of_interning_leaves_no_mark() -> None:
    other = Names()
    for text in ("never used", "prices", "loss", "app", "flood"):
        other.code(text)
    codes = [list(DTYPES).index(name) for name in TEXTS]
    rows = [tuple(other.code(NAMES[v]) if i in codes else v for i, v in enumerate(row)) for row in ROWS]
    assert rows != ROWS
    assert digest(*cut(rows, 20, 31), names=other) == digest(batch(ROWS))


def test_a_text_counts() -> None:
    other = Names()
    for text in ("flood", "app", "loss", "price"):
        other.code(text)
    assert digest(batch(ROWS), names=other) != digest(batch(ROWS))


def test_texts_cannot_run_into_each_other() -> None:
    def of(first: str, second: str) -> str:
        names = Names()
        codes = names.code(first), names.code(second)
        return digest(batch([(*ROWS[0][:-2], code, 0) for code in codes]), names=names)

    assert of("ab", "c") != of("a", "bc")


def test_more_rows_may_follow_a_digest() -> None:
    total = TraceDigest(NAMES)
    assert total.hexdigest() == digest()
    total.update(batch(ROWS[:50]))
    assert total.hexdigest() == digest(batch(ROWS[:50]))
    total.update(batch(ROWS[50:]))
    assert total.hexdigest() == digest(batch(ROWS))


def test_the_layout_in_memory_leaves_no_mark() -> None:
    spread = {name: np.repeat(column, 2)[::2] for name, column in batch(ROWS).columns()}
    assert not spread["node"].flags.c_contiguous
    assert digest(Batch(**spread)) == digest(batch(ROWS))


def test_the_digest_means_the_same_in_every_version() -> None:
    rows = [(n // 3, n % 2, n, -1, 7, n // 2, n % 3, 100, 1 + n % 2, 3, n // 2, 0) for n in range(10)]
    assert digest(batch(rows)) == "8df24e77d9d5288ad39d089031d73811"
